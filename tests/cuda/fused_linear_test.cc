// Linear layers with a gelu or a residual on cuda:0, with cuBLASLt's epilogues (of a fake library
// that checks its arguments) and without them, compared with the CPU.

#include "core/ops/matmul/fused_linear.h"

#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/copies.h"
#include "core/device/slow_paths.h"
#include "core/ops/matmul/matmul.h"
#include "kernels/cuda/matmul/matmul_lt.h"
#include "tests/cuda/agreement.h"
#include "tests/emulation/fake_cublas_lt.h"

namespace lockstep {
namespace {

using cuda::AddendStrategy;
using cuda::CublasLtScope;
using cuda::fake_cublas_lt_books;
using cuda::FakeCublasLtBooks;
using cuda::LtActivation;
using cuda::LtEpilogue;
using ::testing::IsEmpty;

/// Implementation that computes the layer.
enum class By { kEpilogues, kProductsOfCublasLt, kTiles, kOneAddendAtATime };

class CudaFusedLinear : public ::testing::TestWithParam<By> {
 protected:
  CudaFusedLinear() {
    books.knows_bias = GetParam() != By::kProductsOfCublasLt;
    books.knows_gelu = GetParam() != By::kProductsOfCublasLt;
    books.takes_bias_beside_c = GetParam() != By::kOneAddendAtATime;
  }
  ~CudaFusedLinear() override { EXPECT_THAT(books.misuse, IsEmpty()); }

  CublasLtScope library{GetParam() == By::kTiles ? CublasLtScope::Library::kMissing
                                                 : CublasLtScope::Library::kPresent};
  FakeCublasLtBooks& books = fake_cublas_lt_books();
};

std::string name_of(const ::testing::TestParamInfo<By>& info) {
  constexpr const char* kNames[] = {"CublasLtEpilogues", "CublasLtProducts", "Tiles",
                                    "OneAddendAtATime"};
  return kNames[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(By, CudaFusedLinear,
                         ::testing::Values(By::kEpilogues, By::kProductsOfCublasLt, By::kTiles,
                                           By::kOneAddendAtATime),
                         &name_of);

std::vector<Tensor> values(const Gelu& gelu) { return {gelu.value, gelu.of}; }

TEST_P(CudaFusedLinear, GeluAgreesWithTheCpu) {
  for (const DType dtype : kFloating) {
    for (const int64_t out : {16, 13}) {  // 13: rows unaligned for an auxiliary matrix
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << out << " features");
      const std::vector<Tensor> inputs = {random_leaf({2, 5, 8}, dtype, 1),
                                          random_leaf({out, 8}, dtype, 2),
                                          random_leaf({out}, dtype, 3)};
      const double tolerance = 5 * rounding_of(dtype);
      expect_agreement(
          inputs, [](auto& t) { return values(linear_gelu(t[0], t[1], t[2])); }, tolerance);
      expect_agreement(
          {inputs[0], inputs[1]}, [](auto& t) { return values(linear_gelu(t[0], t[1])); },
          tolerance);
    }
  }
}

TEST_P(CudaFusedLinear, AResidualIsAddedAsOnTheCpu) {
  for (const DType dtype : kFloating) {
    for (const DType wide : {dtype, DType::kF32}) {
      if (dtype == DType::kF64 && wide != dtype) continue;
      SCOPED_TRACE(testing::Message() << to_string(dtype) << " onto " << to_string(wide));
      const std::vector<Tensor> inputs = {
          random_leaf({2, 5, 12}, wide, 1), random_leaf({2, 5, 8}, dtype, 2),
          random_leaf({12, 8}, dtype, 3), random_leaf({12}, wide, 4)};
      const double tolerance = 5 * rounding_of(dtype);
      expect_agreement(
          inputs, [](auto& t) { return std::vector<Tensor>{linear_add(t[0], t[1], t[2], t[3])}; },
          tolerance);
      expect_agreement(
          {inputs[0], inputs[1], inputs[2]},
          [](auto& t) { return std::vector<Tensor>{linear_add(t[0], t[1], t[2])}; }, tolerance);
    }
  }
}

TEST_P(CudaFusedLinear, ABlocksBranchAgreesWithTheCpu) {
  for (const DType dtype : kFloating) {
    SCOPED_TRACE(to_string(dtype));
    const std::vector<Tensor> inputs = {random_leaf({2, 5, 8}, dtype, 1),
                                        random_leaf({32, 8}, dtype, 2), random_leaf({32}, dtype, 3),
                                        random_leaf({8, 32}, dtype, 4), random_leaf({8}, dtype, 5)};
    const auto branch = [](auto& t) {
      return std::vector<Tensor>{linear_of_gelu(linear_gelu(t[0], t[1], t[2]), t[3], t[4], t[0])};
    };
    expect_agreement(inputs, branch, 20 * rounding_of(dtype));
  }
}

TEST_P(CudaFusedLinear, CopiesNothing) {
  const Tensor x = random_tensor({6, 8}, DType::kF32, 1).to(kGpu);
  const Tensor weight = random_tensor({8, 8}, DType::kF32, 2).to(kGpu);
  const int64_t before = hidden_copies().copies;
  linear_of_gelu(linear_gelu(x, weight), weight, {}, x);
  EXPECT_EQ(hidden_copies().copies, before);
}

/// Tests that need the fake library.
class CudaCublasLtEpilogue : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library.is_fake()) GTEST_SKIP() << "the GPU's own cuBLASLt keeps no records";
  }
  ~CudaCublasLtEpilogue() override { EXPECT_THAT(books.misuse, IsEmpty()); }

  CublasLtScope library{CublasLtScope::Library::kPresent};
  FakeCublasLtBooks& books = fake_cublas_lt_books();
  Tensor x = on_gpu({6, 8}, 1);
  Tensor weight = on_gpu({16, 8}, 2);
  Tensor bias = on_gpu({16}, 3);

  static Tensor on_gpu(IntList sizes, uint64_t seed) {
    return random_tensor(sizes, DType::kF32, seed).to(kGpu);
  }
};

TEST_F(CudaCublasLtEpilogue, AGeluIsOneCallThatKeepsItsArgument) {
  linear_gelu(x, weight, bias);
  EXPECT_EQ(books.products, 1);
  EXPECT_EQ(books.epilogue, unsigned{CUBLASLT_EPILOGUE_GELU_AUX_BIAS});
  linear_gelu(x, weight);
  EXPECT_EQ(books.products, 2);
  EXPECT_EQ(books.epilogue, unsigned{CUBLASLT_EPILOGUE_GELU_AUX});
}

TEST_F(CudaCublasLtEpilogue, TheSlopeOfAGeluIsOneCallWithoutGradientsOfABias) {
  linear_of_gelu_backward(on_gpu({6, 16}, 4), weight, on_gpu({6, 8}, 5));
  EXPECT_EQ(books.products, 1);
  EXPECT_EQ(books.epilogue, unsigned{CUBLASLT_EPILOGUE_DGELU});
}

TEST_F(CudaCublasLtEpilogue, AGradientOfABiasIsASumBesideTheProduct) {
  const Tensor grad = on_gpu({6, 16}, 4);
  const LinearParameters got = linear_parameters_backward(grad, x);
  EXPECT_EQ(books.products, 1);
  EXPECT_EQ(books.epilogue, unsigned{CUBLASLT_EPILOGUE_DEFAULT});
  const LinearParameters want = linear_parameters_backward(grad.to(kCPU), x.to(kCPU));
  const auto expect_close = [](const Tensor& a, const Tensor& b) {
    EXPECT_THAT(floats_of(a), testing::Pointwise(testing::FloatNear(1e-5F), floats_of(b)));
  };
  expect_close(got.weight, want.weight);
  expect_close(got.bias, want.bias);
}

TEST_F(CudaCublasLtEpilogue, AResidualIsTheMatrixBesideTheProduct) {
  linear_add(on_gpu({6, 16}, 4), x, weight, bias);
  EXPECT_EQ(books.products, 1);
  EXPECT_EQ(books.epilogue, unsigned{CUBLASLT_EPILOGUE_BIAS});
  EXPECT_EQ(books.beta, 1);
  linear_add(on_gpu({6, 16}, 4), x, weight);
  EXPECT_EQ(books.products, 2);
  EXPECT_EQ(books.epilogue, unsigned{CUBLASLT_EPILOGUE_DEFAULT});
  EXPECT_EQ(books.beta, 1);
}

int64_t calls_of(const std::string& what) {
  for (const SlowPath& path : slow_paths()) {
    if (path.what == what) return path.calls;
  }
  return 0;
}

TEST_F(CudaCublasLtEpilogue, OneThatIsMissingIsCountedByItsName) {
  const std::string gelu = "products of float32 with a bias and a gelu";
  const std::string residual = "products of float32 with a bias and a residual";
  const std::string plain = "products of float32 with a bias";
  const int64_t gelus = calls_of(gelu), residuals = calls_of(residual), biases = calls_of(plain);
  linear_gelu(x, weight, bias);
  EXPECT_EQ(calls_of(gelu), gelus) << "it is there";
  books.knows_gelu = false;
  const Tensor other = on_gpu({24, 8}, 7);  // plans are kept: sizes that were not asked for yet
  linear_gelu(x, other, on_gpu({24}, 8));
  EXPECT_EQ(calls_of(gelu), gelus + 1);
  books.takes_bias_beside_c = false;
  for (int i = 0; i < 2; ++i) linear_add(on_gpu({6, 24}, 9), x, other, on_gpu({24}, 8));
  EXPECT_EQ(calls_of(residual), residuals + 2);
  EXPECT_EQ(calls_of(plain), biases);
  books.knows_bias = false;
  linear(x, on_gpu({40, 8}, 7), on_gpu({40}, 8));
  EXPECT_EQ(calls_of(plain), biases + 1);
}

TEST_F(CudaCublasLtEpilogue, WhatALaunchRefusesIsNotTriedAgain) {
  books.takes_bias_beside_c = false;
  const Tensor other = on_gpu({56, 8}, 7), added = on_gpu({56}, 8);
  linear_add(on_gpu({6, 56}, 9), x, other, added);
  EXPECT_EQ(books.products, 1) << "the product with its bias; the residual is a pass over it";
  const int asked = books.advised;
  books.takes_bias_beside_c = true;
  linear_add(on_gpu({6, 56}, 9), x, other, added);
  EXPECT_EQ(books.epilogue, unsigned{CUBLASLT_EPILOGUE_BIAS});
  EXPECT_EQ(books.beta, 0) << "as before, so that equal calls have equal bits";
  EXPECT_EQ(books.advised, asked);
}

TEST_F(CudaCublasLtEpilogue, IsAskedOnceForAnAlgorithmOfEachEpilogue) {
  for (int i = 0; i < 3; ++i) linear_gelu(x, weight, bias);
  EXPECT_EQ(books.advised, 1);
  linear(x, weight, bias);
  EXPECT_EQ(books.advised, 2);
}

Product product_of_rows(int64_t n, DType dtype) {
  alignas(16) static double memory[256] = {};
  Product p{.dtype = dtype, .m = 4, .n = n, .k = 8};
  p.a = {memory, 8};
  p.b = {memory, 8, true};
  p.result = memory;
  p.ld = n;
  return p;
}

TEST(CudaLtEpilogue, AnActivationNeedsRowsOfEightsAndHasNoDouble) {
  double memory[64] = {};
  const LtEpilogue gelu{.activation = LtActivation::kGelu, .aux = memory};
  const auto exists = [&](int64_t n, DType dtype, AddendStrategy strategy = AddendStrategy::kNone) {
    return cuda::lt_problem(product_of_rows(n, dtype), strategy, false, gelu).has_value();
  };
  EXPECT_TRUE(exists(8, DType::kF32));
  EXPECT_TRUE(exists(16, DType::kBF16, AddendStrategy::kBias));
  EXPECT_FALSE(exists(12, DType::kF32));
  EXPECT_FALSE(exists(8, DType::kF64));
  EXPECT_FALSE(exists(8, DType::kF32, AddendStrategy::kMatrix)) << "no place for a second matrix";
}

TEST(CudaLtEpilogue, AResidualOfF32MakesAResultOfF32BesideFactorsOfHalves) {
  alignas(16) float memory[64] = {};
  const LtEpilogue onto{.residual = memory + 1, .result_dtype = DType::kF32};
  const auto problem =
      cuda::lt_problem(product_of_rows(12, DType::kBF16), AddendStrategy::kBias, true, onto);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->dtype, DType::kBF16);
  EXPECT_EQ(problem->result_dtype, DType::kF32);
  EXPECT_TRUE(problem->adds_c);
  EXPECT_TRUE(problem->bias);
  EXPECT_EQ(problem->c.alignment, 4);
  EXPECT_EQ(problem->c.ld, problem->d.ld);
}

}  // namespace
}  // namespace lockstep
