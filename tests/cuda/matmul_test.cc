// Matrix products on cuda:0, by cuBLASLt (a fake one that checks its arguments) and by our own
// kernel that replaces it, compared with the CPU.

#include "core/ops/matmul/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cuda/device_facts.h"
#include "core/device/copies.h"
#include "core/device/spared_processors.h"
#include "core/ops/factory/copy.h"
#include "core/ops/random/random.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/matmul_lt.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/gpu.h"
#include "tests/emulation/fake_cublas_lt.h"

namespace lockstep {
namespace {

using cuda::AddendStrategy;
using cuda::CublasLtScope;
using cuda::fake_cublas_lt_books;
using ::testing::IsEmpty;

/// Small whole numbers, so that sums of their products are exact in every dtype tested.
Tensor numbers(IntList sizes, DType dtype, int64_t seed = 1) {
  Tensor tensor = empty_tensor(sizes, DType::kF32);
  auto* const data = static_cast<float*>(tensor.data());
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    data[i] = static_cast<float>((i * 7 + seed * 5 + i / 3) % 5 - 2);
  }
  return tensor.to(dtype);
}

/// Largest difference between elements; both tensors are cast to f64.
double distance(const Tensor& expected, const Tensor& got) {
  EXPECT_EQ(got.device(), kGpu);
  EXPECT_EQ(expected.sizes().size(), got.sizes().size());
  EXPECT_EQ(expected.numel(), got.numel());
  EXPECT_EQ(expected.dtype(), got.dtype());
  const Tensor a = expected.to(DType::kF64).contiguous();
  const Tensor b = got.to(kCPU).to(DType::kF64).contiguous();
  double most = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double difference =
        static_cast<const double*>(a.data())[i] - static_cast<const double*>(b.data())[i];
    most = std::max(most, difference < 0 ? -difference : difference);
    if (difference != difference) return difference;
  }
  return most;
}

class CudaMatmul : public ::testing::TestWithParam<CublasLtScope::Library> {
 protected:
  ~CudaMatmul() override { EXPECT_THAT(fake_cublas_lt_books().misuse, IsEmpty()); }

  CublasLtScope library{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(By, CudaMatmul,
                         ::testing::Values(CublasLtScope::Library::kPresent,
                                           CublasLtScope::Library::kMissing),
                         [](const auto& info) {
                           return info.param == CublasLtScope::Library::kPresent ? "CublasLt"
                                                                                 : "Tiles";
                         });

struct Sizes {
  int64_t m, n, k;
};

TEST_P(CudaMatmul, MultipliesEveryDTypeAndSize) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI64,
                            DType::kI32, DType::kI16, DType::kI8, DType::kU8}) {
    for (const auto& [m, n, k] :
         {Sizes{1, 1, 1}, {3, 5, 7}, {64, 64, 16}, {65, 63, 17}, {1, 130, 33}}) {
      const Tensor a = numbers({m, k}, dtype);
      const Tensor b = numbers({k, n}, dtype, 2);
      EXPECT_EQ(distance(mm(a, b), mm(a.to(kGpu), b.to(kGpu))), 0)
          << to_string(dtype) << " " << m << " " << n << " " << k;
    }
  }
}

TEST_P(CudaMatmul, ReadsRowsAndColumnsWithoutCopies) {
  for (const bool turn_a : {false, true}) {
    for (const bool turn_b : {false, true}) {
      // Submatrices, so that leading dimensions exceed the lengths of rows.
      const Tensor a = numbers(turn_a ? IntList({20, 12}) : IntList({12, 20}), DType::kF32);
      const Tensor b = numbers(turn_b ? IntList({9, 20}) : IntList({20, 9}), DType::kF32, 3);
      const auto part = [](const Tensor& from, bool turned) {
        const Tensor inner = from.slice(0, 1, from.size(0) - 1).slice(1, 1, from.size(1) - 1);
        return turned ? inner.t() : inner;
      };
      const auto gpu_a = a.to(kGpu);
      const auto gpu_b = b.to(kGpu);
      const int64_t before = hidden_copies().copies;
      const Tensor got = mm(part(gpu_a, turn_a), part(gpu_b, turn_b));
      EXPECT_EQ(hidden_copies().copies, before);
      EXPECT_EQ(distance(mm(part(a, turn_a), part(b, turn_b)), got), 0) << turn_a << turn_b;
    }
  }
}

TEST_P(CudaMatmul, MultipliesBatchesAlsoOfOneMatrix) {
  const Tensor a = numbers({3, 5, 4}, DType::kF32);
  const Tensor b = numbers({3, 4, 6}, DType::kF32, 2);
  const Tensor one = numbers({4, 6}, DType::kF32, 3);
  const Tensor left = numbers({5, 4}, DType::kF32, 4);
  EXPECT_EQ(distance(bmm(a, b), bmm(a.to(kGpu), b.to(kGpu))), 0);
  EXPECT_EQ(
      distance(bmm(a, one.expand({3, 4, 6})), bmm(a.to(kGpu), one.to(kGpu).expand({3, 4, 6}))), 0);
  EXPECT_EQ(
      distance(bmm(left.expand({3, 5, 4}), b), bmm(left.to(kGpu).expand({3, 5, 4}), b.to(kGpu))),
      0);
  EXPECT_EQ(distance(bmm(a, b.transpose(1, 2).contiguous().transpose(1, 2)),
                     bmm(a.to(kGpu), b.transpose(1, 2).contiguous().to(kGpu).transpose(1, 2))),
            0);
}

TEST_P(CudaMatmul, AddsWhateverStretchesToTheResult) {
  const DType dtypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kI64};
  const std::vector<std::vector<int64_t>> addends = {{5, 6}, {6}, {1, 6}, {5, 1}, {1, 1}, {}};
  const std::pair<int, int> factors[] = {{1, 1}, {2, 3}, {0, 2}, {3, 0}};
  for (const DType dtype : dtypes) {
    const Tensor a = numbers({5, 4}, dtype);
    const Tensor b = numbers({4, 6}, dtype, 2);
    for (const auto& sizes : addends) {
      const Tensor self = numbers(sizes, dtype, 3);
      for (const auto& [beta, alpha] : factors) {
        EXPECT_EQ(distance(addmm(self, a, b, beta, alpha),
                           addmm(self.to(kGpu), a.to(kGpu), b.to(kGpu), beta, alpha)),
                  0)
            << to_string(dtype) << " addend of " << sizes.size() << " dimensions, " << beta << ", "
            << alpha;
      }
    }
  }
}

TEST_P(CudaMatmul, AddsToBatches) {
  const Tensor a = numbers({3, 5, 4}, DType::kF32);
  const Tensor b = numbers({3, 4, 6}, DType::kF32, 2);
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{3, 5, 6}, {5, 6}, {6}, {3, 1, 6}, {3, 5, 1}, {3, 1, 1}}) {
    const Tensor self = numbers(sizes, DType::kF32, 3);
    for (const int beta : {1, 2}) {
      EXPECT_EQ(distance(baddbmm(self, a, b, beta, 1),
                         baddbmm(self.to(kGpu), a.to(kGpu), b.to(kGpu), beta, 1)),
                0)
          << sizes.size() << " dimensions, " << beta;
    }
  }
}

TEST_P(CudaMatmul, AnAddendTimesZeroIsNotRead) {
  Tensor self = empty_tensor(IntList({2, 2}), DType::kF32);
  for (int i = 0; i < 4; ++i) static_cast<float*>(self.data())[i] = NAN;
  const Tensor a = numbers({2, 3}, DType::kF32);
  const Tensor b = numbers({3, 2}, DType::kF32);
  EXPECT_EQ(distance(mm(a, b), addmm(self.to(kGpu), a.to(kGpu), b.to(kGpu), 0, 1)), 0);
}

TEST_P(CudaMatmul, AResultMayBeTheMemoryOfAFactorOrOfTheAddend) {
  const Tensor a = numbers({4, 4}, DType::kF32);
  const Tensor b = numbers({4, 4}, DType::kF32, 2);
  const Tensor expected = mm(a, b);
  Tensor gpu = a.to(kGpu);
  mm_out(gpu, gpu, b.to(kGpu));
  EXPECT_EQ(distance(expected, gpu), 0);
  gpu = b.to(kGpu);
  mm_out(gpu, a.to(kGpu), gpu);
  EXPECT_EQ(distance(expected, gpu), 0);
  gpu = b.to(kGpu);
  addmm_out(gpu, gpu, a.to(kGpu), b.to(kGpu), 2, 3);
  EXPECT_EQ(distance(addmm(b, a, b, 2, 3), gpu), 0);
}

TEST_P(CudaMatmul, ASumOfNothingIsZero) {
  const Tensor a = numbers({3, 0}, DType::kF32);
  const Tensor b = numbers({0, 5}, DType::kF32);
  EXPECT_EQ(distance(mm(a, b), mm(a.to(kGpu), b.to(kGpu))), 0);
  const Tensor bias = numbers({5}, DType::kF32);
  EXPECT_EQ(distance(addmm(bias, a, b, 2, 1), addmm(bias.to(kGpu), a.to(kGpu), b.to(kGpu), 2, 1)),
            0);
  EXPECT_EQ(
      mm(numbers({0, 3}, DType::kF32).to(kGpu), numbers({3, 5}, DType::kF32).to(kGpu)).numel(), 0);
}

TEST_P(CudaMatmul, LongSumsAreAsExactAsTheCpus) {
  const Tensor a = randn({70, 600});
  const Tensor b = randn({600, 40});
  EXPECT_LT(distance(mm(a, b), mm(a.to(kGpu), b.to(kGpu))), 2e-4);
  const Tensor narrow_a = a.to(DType::kBF16);
  const Tensor narrow_b = b.to(DType::kBF16);
  EXPECT_LE(distance(mm(narrow_a, narrow_b), mm(narrow_a.to(kGpu), narrow_b.to(kGpu))), 0.5)
      << "one rounding of numbers up to 128";
}

/// Tests that need the fake library.
class CudaCublasLt : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library.is_fake()) GTEST_SKIP() << "the GPU's own cuBLASLt keeps no records";
  }
  ~CudaCublasLt() override { EXPECT_THAT(fake_cublas_lt_books().misuse, IsEmpty()); }

  CublasLtScope library{CublasLtScope::Library::kPresent};
  cuda::FakeCublasLtBooks& books = fake_cublas_lt_books();
  Tensor a = numbers({4, 8}, DType::kF32);
  Tensor b = numbers({8, 16}, DType::kF32, 2);
  Tensor bias = numbers({16}, DType::kF32, 3);
};

TEST_F(CudaCublasLt, IsAskedOnceForAnAlgorithmOfEachGeometry) {
  const Tensor gpu_a = a.to(kGpu);
  const Tensor gpu_b = b.to(kGpu);
  for (int i = 0; i < 3; ++i) mm(gpu_a, gpu_b);
  EXPECT_EQ(books.products, 3);
  EXPECT_EQ(books.advised, 1);
  mm(gpu_a.slice(0, 0, 2), gpu_b);
  EXPECT_EQ(books.advised, 2);
}

TEST_F(CudaCublasLt, MaySplitSumsOnlyWhereTheirOrderIsFixed) {
  mm(a.to(kGpu), b.to(kGpu));
  EXPECT_EQ(books.reduction_schemes, 2u) << "CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE";
}

TEST_F(CudaCublasLt, WithoutAnEpilogueTheBiasGoesThroughTheResult) {
  books.knows_bias = false;
  EXPECT_EQ(distance(addmm(bias, a, b), addmm(bias.to(kGpu), a.to(kGpu), b.to(kGpu))), 0);
  EXPECT_EQ(books.products, 1);
  EXPECT_EQ(books.advised, 2);
}

TEST_F(CudaCublasLt, WhatItHasNoAlgorithmForIsComputedWithoutIt) {
  books.knows_anything = false;
  EXPECT_EQ(distance(addmm(bias, a, b), addmm(bias.to(kGpu), a.to(kGpu), b.to(kGpu))), 0);
  EXPECT_EQ(books.products, 0);
}

TEST_F(CudaCublasLt, LeavesTheProcessorsThatAreSparedToOthers) {
  const Tensor gpu_a = a.to(kGpu), gpu_b = b.to(kGpu);
  const Tensor expected = mm(gpu_a, gpu_b).to(kCPU);
  EXPECT_EQ(books.processors, 0) << "all of them";
  const int all = cuda::device_facts(kGpu.index).processors;
  for (const int spared : {1, all}) {
    spare_processors(spared);
    EXPECT_EQ(distance(expected, mm(gpu_a, gpu_b)), 0);
    EXPECT_EQ(books.processors, std::max(all - spared, 1));
  }
  EXPECT_EQ(books.advised, 3) << "of each number of processors once";
  spare_processors(0);
  mm(gpu_a, gpu_b);
  EXPECT_EQ(books.processors, 0);
  EXPECT_EQ(books.advised, 3);
}

TEST_F(CudaCublasLt, AHandleThatIsRefusedIsAnError) {
  books.can_create = false;
  const Tensor gpu_a = a.to(kGpu);
  const Tensor gpu_b = b.to(kGpu);
  expect_error<DeviceError>([&] { mm(gpu_a, gpu_b); }, "cublasLtCreate failed on cuda:0",
                            "LOCKSTEP_CUDA_LIBRARIES");
}

TEST_F(CudaCublasLt, TakesTheWorkspaceThatTheAlgorithmWants) {
  const Tensor large = numbers({64, 64}, DType::kBF16);
  EXPECT_EQ(distance(mm(large, large), mm(large.to(kGpu), large.to(kGpu))), 0);
  EXPECT_EQ(books.products, 1);
}

Product product_4_by_6() {
  static const float memory[64] = {};
  Product p{.m = 4, .n = 6, .k = 5};
  p.a = {memory, 5};
  p.b = {memory, 6};
  p.result = const_cast<float*>(memory);
  p.ld = 6;
  p.addend = {memory, 0, 6, 1};
  p.beta = 1;
  return p;
}

TEST(CudaAddendStrategies, DependOnStridesAndBeta) {
  const auto first = [](const auto& change) {
    Product p = product_4_by_6();
    change(p);
    return cuda::addend_strategies(p).first;
  };
  EXPECT_EQ(first([](Product&) {}), AddendStrategy::kMatrix);
  EXPECT_EQ(first([](Product& p) { p.beta = 0; }), AddendStrategy::kNone);
  EXPECT_EQ(first([](Product& p) { p.addend.row = 0; }), AddendStrategy::kBias);
  EXPECT_EQ(first([](Product& p) { p.addend.row = 0, p.beta = 2; }), AddendStrategy::kSpread);
  EXPECT_EQ(first([](Product& p) { p.addend.row = 0, p.dtype = DType::kF64; }),
            AddendStrategy::kSpread);
  EXPECT_EQ(first([](Product& p) { p.addend.row = 1, p.addend.column = 4; }),
            AddendStrategy::kSpread);
  EXPECT_EQ(first([](Product& p) { p.addend.row = 1, p.addend.column = 0; }),
            AddendStrategy::kSpread);
  EXPECT_EQ(first([](Product& p) { p.batch = 2; }), AddendStrategy::kSpread) << "one for all";
}

TEST(CudaLtProblem, IsTheTransposedProductInColumns) {
  Product p = product_4_by_6();
  p.a.transposed = true;
  p.a.ld = 4;
  const auto problem = cuda::lt_problem(p, AddendStrategy::kMatrix, true);
  ASSERT_TRUE(problem);
  EXPECT_TRUE(problem->tf32);
  EXPECT_FALSE(problem->transpose_a);
  EXPECT_TRUE(problem->transpose_b);
  EXPECT_EQ(problem->a.rows, 6);
  EXPECT_EQ(problem->a.columns, 5);
  EXPECT_EQ(problem->b.rows, 4);
  EXPECT_EQ(problem->b.columns, 5);
  EXPECT_EQ(problem->d.rows, 6);
  EXPECT_EQ(problem->d.columns, 4);
  EXPECT_TRUE(problem->adds_c);
  p.dtype = DType::kBF16;
  EXPECT_FALSE(cuda::lt_problem(p, AddendStrategy::kMatrix, true)->tf32) << "an option of f32";
}

TEST(CudaLtProblem, ThereIsNoneWhereTheLibraryHasNoNumbersOrSizesForIt) {
  const auto exists = [](const auto& change) {
    Product p = product_4_by_6();
    change(p);
    return cuda::lt_problem(p, AddendStrategy::kNone, false).has_value();
  };
  EXPECT_TRUE(exists([](Product&) {}));
  EXPECT_FALSE(exists([](Product& p) { p.k = 0; }));
  EXPECT_FALSE(exists([](Product& p) { p.dtype = DType::kI32; }));
  EXPECT_FALSE(exists([](Product& p) { p.m = int64_t{1} << 31; }));
}

TEST(CudaLtProblem, NoMoreAlignmentIsSaidThanKernelsUse) {
  alignas(256) static const float memory[128] = {};
  Product p = product_4_by_6();
  p.a.data = memory;
  p.b.data = memory + 1;
  const auto problem = cuda::lt_problem(p, AddendStrategy::kNone, false);
  EXPECT_EQ(problem->b.alignment, 16);
  EXPECT_EQ(problem->a.alignment, 4);
}

TEST(CudaMatmulTiles, CoverTheResult) {
  Product p = product_4_by_6();
  EXPECT_EQ(cuda::tiles_of(p).tiles(), 1);
  p.m = 65;
  p.n = 129;
  p.batch = 2;
  EXPECT_EQ(cuda::tiles_of(p).tiles(), 2 * 2 * 3);
}

}  // namespace
}  // namespace lockstep
