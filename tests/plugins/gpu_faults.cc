// A plug-in whose GPU kernels do what they must not, and one that says where it runs. The module is
// one for the emulated GPU alone, which takes any that begins as a fatbin does.

#include <cstdint>
#include <cstring>

#include "core/plugin_wrapper.h"

using namespace lockstep::plugin;

namespace {

const uint64_t kImage[] = {0xba55ed50u, 0};

struct Small {
  int32_t number;
};

void like_self(Rule& rule, View self) { rule.result_like(self); }

void no_such_kernel(Gpu gpu, Result, View) {
  gpu.launch(kImage, "no_such_kernel", Grid{}, Small{0});
}
void other_parameters(Gpu gpu, Result, View) {
  gpu.launch(kImage, "my_rms_scale", Grid{}, Small{0});
}
void takes_and_throws(Gpu gpu, Result, View) {
  gpu.scratch<char>(size_t{3} << 20);
  throw Failure("changed its mind");
}

void where(Gpu gpu, Result out, View) {
  const int64_t found[] = {gpu.device(), reinterpret_cast<int64_t>(gpu.stream())};
  std::memcpy(out.raw(), found, sizeof(found));
}

}  // namespace

LS_PLUGIN(library) {
  const auto define = [&](const char* schema) {
    return library.define(schema, "For tests.").rule(&like_self);
  };
  define("gpu::no_such_kernel(Tensor self) -> Tensor")
      .kernel(&no_such_kernel, Strides::kAny, Backend::kCUDA)
      .kernel(&no_such_kernel);
  define("gpu::other_parameters(Tensor self) -> Tensor")
      .kernel(&other_parameters, Strides::kAny, Backend::kCUDA);
  define("gpu::takes_and_throws(Tensor self) -> Tensor")
      .kernel(&takes_and_throws, Strides::kAny, Backend::kCUDA)
      .kernel(&takes_and_throws);
  library.define("gpu::where(Tensor self) -> Tensor", "The device's index and the stream.")
      .rule([](Rule& rule, View) { rule.result({2}, DType::kI64); })
      .kernel(&where, Strides::kAny, Backend::kCUDA);
}
