#include "compile/native/load_inline.h"

#include <gmock/gmock.h>

#include "core/device/copies.h"
#include "core/dispatch/call_op.h"
#include "core/ops/random/random.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/gpu.h"

namespace lockstep {
namespace {

constexpr const char* kText = R"(
using namespace lockstep::plugin;

struct Twice { const float* in; float* out; int64_t count; };

void on_gpu(Gpu gpu, Result out, View self) {
  gpu.launch(kImage, "twice", Grid{4, 64}, Twice{self.data<float>(), out.data<float>(), self.numel()});
}
void rule(Rule& rule, View self) { rule.result_like(self); }

LS_PLUGIN(library) {
  library.define("mine::twice(Tensor self) -> Tensor", "2 self.")
      .rule(rule)
      .kernel(on_gpu, Strides::kContiguous, Backend::kCUDA);
}
)";
constexpr const char* kKernel = R"(#include <cstdint>

#include "core/cuda/kernel.cuh"

struct Twice { const float* in; float* out; int64_t count; };

LS_CUDA_KERNEL(twice, Twice, 64) {
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < p.count; i += gridDim.x * blockDim.x) p.out[i] = 2 * p.in[i];
}
)";

class CudaLoadInline : public ::testing::Test {
 protected:
  train::TemporaryDirectory folder_;
  EnvironmentVariable cache_{"LOCKSTEP_CACHE_DIR", (folder_.path() / "cache").c_str()};
};

TEST_F(CudaLoadInline, LaunchesTheKernelsOfItsText) {
  const Tensor x = randn({1003}).to(kGpu);
  for (int load = 0; load < 2; ++load) {
    const Plugin plugin = load_inline({.text = kText, .cuda = kKernel});
    const int64_t copies = hidden_copies().copies;
    EXPECT_EQ(floats_of(call_op("mine::twice", {x})), floats_of(x.add(x)));
    EXPECT_EQ(hidden_copies().copies, copies) << "ran on the cpu";
  }
}

TEST_F(CudaLoadInline, ShowsTheCompilersErrorsAtTheLinesOfTheKernels) {
  std::string kernel = kKernel;
  kernel.replace(kernel.find("2 * p.in"), 8, "2 * p.on");
  expect_error<DeviceError>(
      [&] { (void)load_inline({.text = kText, .name = "twice", .cuda = kernel}); },
      "does not compile a kernel", "twice.cu:9:");
}

}  // namespace
}  // namespace lockstep
