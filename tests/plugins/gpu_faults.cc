// A plug-in with GPU kernels that violate rules, and some that report where they run. The module is
// that of examples/custom_cuda_op.

#include <cstdint>

#include "core/plugin/plugin_wrapper.h"
#include "rms_normalize.fatbin.h"

using namespace lockstep::plugin;

namespace {

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

int64_t device(Gpu gpu, View) { return gpu.device(); }
int64_t stream(Gpu gpu, View) { return reinterpret_cast<int64_t>(gpu.stream()); }

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
  library.define("gpu::device(Tensor self) -> int", "The device's index.")
      .kernel(&device, Strides::kAny, Backend::kCUDA);
  library.define("gpu::stream(Tensor self) -> int", "The call's CUstream, as a number.")
      .kernel(&stream, Strides::kAny, Backend::kCUDA);
}
