// What a product tells cuBLASLt, told to the library that is installed. Its descriptors need no
// GPU.

#include <gtest/gtest.h>

#include "core/cuda/cublas_lt.h"
#include "kernels/cuda/matmul/matmul_lt.h"
#include "kernels/cuda/matmul/matmul_lt_plan.h"

namespace lockstep::cuda {
namespace {

alignas(16) float g_memory[4096] = {};

/// A product [8, 16] x [16, 32] with an addend as `strategy` passes it.
Product product_with(DType dtype, AddendStrategy strategy, int64_t batch) {
  Product p{.dtype = dtype, .m = 8, .n = 32, .k = 16};
  p.a = {g_memory, 16};
  p.b = {g_memory, 16, true};
  p.batch = batch;
  p.a.batch_stride = p.b.batch_stride = p.batch_stride = batch > 1 ? 256 : 0;
  p.result = g_memory;
  p.ld = 32;
  if (strategy == AddendStrategy::kNone) return p;
  p.beta = 1;
  p.addend = {.data = g_memory,
              .batch = p.batch_stride,
              .row = strategy == AddendStrategy::kBias ? 0 : p.ld,
              .column = 1};
  return p;
}

TEST(RealCublasLt, TakesEveryAttributeOfEveryProduct) {
  static auto& library = *new CublasLtLibrary([] { return load_cublas_lt(); });
  if (!library.loaded().reason.empty()) GTEST_SKIP() << library.loaded().reason;
  int told = 0;
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16}) {
    for (const AddendStrategy strategy : {AddendStrategy::kNone, AddendStrategy::kBias,
                                          AddendStrategy::kMatrix, AddendStrategy::kSpread}) {
      for (const LtActivation activation :
           {LtActivation::kNone, LtActivation::kGelu, LtActivation::kGeluBackward}) {
        for (const bool residual : {false, true}) {
          for (const DType result : {dtype, DType::kF32}) {
            for (const int64_t batch : {1, 3}) {
              LtEpilogue epilogue{.activation = activation, .result_dtype = result};
              if (activation != LtActivation::kNone) epilogue.aux = g_memory;
              if (residual) epilogue.residual = g_memory;
              if (batch > 1 && !epilogue.is_plain()) continue;
              auto problem =
                  lt_problem(product_with(dtype, strategy, batch), strategy, true, epilogue);
              if (!problem) continue;
              problem->processors = batch > 1 ? 120 : 0;
              SCOPED_TRACE(testing::Message() << to_string(dtype) << " into " << to_string(result)
                                              << ", addend " << static_cast<int>(strategy)
                                              << ", activation " << static_cast<int>(activation)
                                              << ", residual " << residual << ", batch " << batch);
              LtPlan plan;
              cublasLtMatmulPreferenceOpaque_t preference{};
              EXPECT_NO_THROW(
                  describe_problem(library, *problem, g_memory, g_memory, plan, preference));
              ++told;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(told, 60);
}

}  // namespace
}  // namespace lockstep::cuda
