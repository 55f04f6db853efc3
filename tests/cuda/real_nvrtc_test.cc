// The sources of kernels that are made at run time, told to the NVRTC that is installed, which
// needs no GPU.

#include <gtest/gtest.h>

#include "core/cuda/nvrtc.h"
#include "core/device/kernel_scope.h"
#include "core/dispatch/element_loop.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/norm/norm.h"
#include "core/ops/random/random.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/every_functor.h"
#include "tests/cuda/kernel_source.h"

namespace lockstep::cuda {
namespace {

class RealNvrtc : public ::testing::Test {
 protected:
  static NvrtcLibrary& library() {
    static auto& library = *new NvrtcLibrary([] { return load_nvrtc(); });
    return library;
  }
  void SetUp() override {
    if (!library().loaded().reason.empty()) GTEST_SKIP() << library().loaded().reason;
    before_ = &set_nvrtc(library());
  }
  void TearDown() override {
    if (before_ != nullptr) set_nvrtc(*before_);
  }

 private:
  NvrtcLibrary* before_ = nullptr;
};

TEST_F(RealNvrtc, TakesEveryFunctorAndDtype) {
  const auto compile_source_of = [](const compiler::Body& body, std::vector<Tensor> inputs) {
    const compiler::NativeSource source = kernel_source(body, inputs);
    const std::vector<std::byte> module =
        source.compiler->compile({.text = source.text, .flags = source.flags});
    const std::string_view bytes(reinterpret_cast<const char*>(module.data()), module.size());
    EXPECT_EQ(bytes.substr(0, 4), "\177ELF");
    EXPECT_NE(bytes.find("lockstep_loop_kernel"), std::string_view::npos);
  };
  const auto numbers = [](DType dtype) { return zeros({64, 8}, {dtype, kGpu}); };
  compile_source_of(&every_functor, {numbers(DType::kF32), numbers(DType::kF32),
                                     numbers(DType::kI64), numbers(DType::kI64)});
  compile_source_of(
      [](TensorList in) {
        std::vector<Tensor> results;
        for (const DType to : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32,
                               DType::kI64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
          results.push_back(in[0].mul(in[1]).add(in[2]).to(to));
        }
        return results;
      },
      {numbers(DType::kF64), zeros({8}, {DType::kBF16, kGpu}), zeros({64, 1}, {DType::kI8, kGpu})});
}

TEST_F(RealNvrtc, TakesGatheredRowsAndMasks) {
  const auto body = [](TensorList in) {
    return std::vector<Tensor>{dropout(embedding(in[0], in[1]).mul(2), 0.5, true)};
  };
  const std::vector<Tensor> inputs{zeros({40, 12}, {DType::kBF16, kGpu}),
                                   zeros({3}, {DType::kI32, kGpu})};
  const compiler::NativeSource source = kernel_source(body, inputs);
  EXPECT_FALSE(source.compiler->compile({.text = source.text, .flags = source.flags}).empty());
}

TEST_F(RealNvrtc, TakesOperatorsAlongRows) {
  const auto body = [](TensorList in) {
    const Tensor x = in[0].softmax(-1).mul(2), sum = x.sum({-1}, true);
    const Tensor largest = x.amax({-1}, true).add(x.amin({-1}, true));
    return std::vector<Tensor>{layer_norm(x.sub(sum), {x.size(-1)}, in[1]), largest,
                               rms_norm(x, {x.size(-1)})};
  };
  for (const auto& [dtype, length] : std::vector<std::pair<DType, int64_t>>{
           {DType::kF32, 64}, {DType::kBF16, 1501}, {DType::kF16, 4096}, {DType::kF64, 64}}) {
    const std::vector<Tensor> inputs{zeros({8, length}, {dtype, kGpu}),
                                     zeros({length}, {dtype, kGpu})};
    const compiler::NativeSource source = kernel_source(body, inputs);
    EXPECT_EQ(source.what.substr(0, 7), "rows of");
    EXPECT_FALSE(source.compiler->compile({.text = source.text, .flags = source.flags}).empty());
  }
}

TEST_F(RealNvrtc, TakesKernelsOfPlugins) {
  const LoopCompiler& compiler = *loop_backend(DeviceType::kCUDA)->compiler;
  const KernelScope on_device(kGpu);
  EXPECT_FALSE(compiler
                   .compile({.text = R"(
#include <cmath>
#include <cstdint>

#include "core/cuda/kernel.cuh"

struct Sum { const float* in; float* out; int64_t count; };

LS_CUDA_KERNEL(sum, Sum, 64) {
  float* const sums = lockstep::cuda::dynamic_shared<float>();
  sums[threadIdx.x] = threadIdx.x < p.count ? std::fabs(p.in[threadIdx.x]) : 0;
  __syncthreads();
  if (threadIdx.x == 0) p.out[0] = sums[0] + sums[1];
}
)",
                             .flags = compiler.flags()})
                   .empty());
}

TEST_F(RealNvrtc, SaysWhatItDoesNotUnderstand) {
  expect_error<DeviceError>(
      [] {
        (void)compile_cuda("__global__ void f() { undefined(); }", {"--gpu-architecture=sm_90"},
                           {});
      },
      "NVRTC does not compile a kernel", "undefined");
  expect_error<DeviceError>([] { (void)compile_cuda("", {"--gpu-architecture=sm_1"}, {}); },
                            "nvrtcCompileProgram failed");
}

}  // namespace
}  // namespace lockstep::cuda
