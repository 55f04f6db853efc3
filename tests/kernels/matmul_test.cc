#include "core/ops/matmul/matmul.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/base/error.h"
#include "core/device/copies.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Matmul, OperandsMayBeAnyViews) {
  const Tensor a = counting({6, 8}).slice(1, 1, 8, 2);  // 6 x 4, contiguous in neither dimension
  const Tensor b = counting({3, 4}).t();
  EXPECT_TRUE(equal(mm(a, b), mm(a.clone().contiguous(), b.contiguous())));
  const Tensor row = counting({4}).expand({5, 4});
  EXPECT_TRUE(equal(mm(row, b), mm(row.contiguous(), b.contiguous())));
  const Tensor batch = counting({4, 2, 3}).permute({1, 2, 0});  // 2 x 3 x 4
  const Tensor stretched = b.unsqueeze(0).expand({2, 4, 3});
  EXPECT_TRUE(equal(bmm(batch, stretched), bmm(batch.contiguous(), stretched.contiguous())));
}

TEST(Matmul, TransposedOperandsAreReadInPlace) {
  const Tensor a = counting({16, 8}).t();
  const Tensor b = counting({12, 16}).t();
  const int64_t before = hidden_copies().copies;
  mm(a, b);
  EXPECT_EQ(hidden_copies().copies, before);
}

TEST(Matmul, OneMatrixForAWholeBatchGivesWhatACopyForEachGives) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI64}) {
    const Tensor shared = counting({5, 4}, dtype).unsqueeze(0).expand({3, 5, 4});
    for (const int64_t rows : {1, 2}) {
      const Tensor batch = counting({3, rows, 5}, dtype);
      const Tensor apart = counting({3, rows, 9}, dtype).slice(2, 2, 7);
      const Tensor added = counting({3, rows, 4}, dtype);
      const Tensor bias = counting({4}, dtype);
      for (const Tensor& left : {batch, apart, batch.slice(1, 0, 1).expand({3, rows, 5})}) {
        const Tensor own = shared.contiguous();
        EXPECT_TRUE(equal(bmm(left, shared), bmm(left.contiguous(), own)));
        EXPECT_TRUE(equal(baddbmm(added, left, shared, 2, 3),
                          baddbmm(added, left.contiguous(), own, 2, 3)));
        EXPECT_TRUE(equal(baddbmm(bias.expand({3, rows, 4}), left, shared),
                          baddbmm(bias, left.contiguous(), own)));
        const Tensor some = counting({3, 5, 4}, dtype).slice(1, 0, rows);
        EXPECT_TRUE(
            equal(baddbmm(some, left, shared), baddbmm(some.contiguous(), left.contiguous(), own)));
      }
    }
  }
}

TEST(Matmul, AColumnTimesARowIsTheirOuterProduct) {
  const Tensor a = counting({3, 4, 1}) * 0.5;
  const Tensor b = counting({3, 1, 7}) - 3;
  EXPECT_TRUE(equal(bmm(a, b), a * b));
  EXPECT_TRUE(equal(bmm(a.reshape({3, 1, 4}).transpose(1, 2), b), a * b));
  EXPECT_TRUE(equal(bmm(a, b.reshape({3, 7, 1}).transpose(1, 2)), a * b));
  const Tensor added = counting({3, 4, 7});
  EXPECT_TRUE(equal(baddbmm(added, a, b, 2, 4), added * 2 + a * b * 4));
}

TEST(Matmul, GradientsOfABatchKeepTheLayoutOfTheFactors) {
  const Tensor weight = counting({2, 5, 4}).set_requires_grad();
  const Tensor x = counting({2, 3, 4});
  const Tensor gradient = grad({sum(bmm(x, weight.transpose(1, 2)))}, {weight})[0];
  EXPECT_TRUE(gradient.is_contiguous());
  EXPECT_TRUE(equal(gradient, sum(x, {1}, true).expand({2, 5, 4})));
}

TEST(Matmul, ResultMayBeWrittenOverAFactor) {
  Tensor a = counting({4, 4});
  const Tensor want = mm(a, a);
  mm_out(a, a, a);
  EXPECT_TRUE(equal(a, want));
}

TEST(Matmul, EmptyInnerSizeGivesZerosOrTheAddend) {
  EXPECT_TRUE(equal(mm(zeros({2, 0}), zeros({0, 3})), zeros({2, 3})));
  EXPECT_TRUE(equal(addmm(counting({3}), zeros({2, 0}), zeros({0, 3}), 2),
                    mul(counting({3}).expand({2, 3}), 2)));
}

TEST(Matmul, ErrorsNameOperatorAndShapes) {
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([] {
              mm(zeros({2, 3}), zeros({4, 5}));
            }),
            "[mm] inner sizes differ: [2, 3] and [4, 5]. Did you mean the second one's transpose?");
  EXPECT_THROW(mm(zeros({2, 3}), zeros({3})), ShapeError);
  EXPECT_THROW(mm(zeros({2, 3}), zeros({3, 2}, DType::kF64)), DTypeError);
  EXPECT_THROW(bmm(zeros({2, 3, 4}), zeros({3, 4, 5})), ShapeError);
  EXPECT_THROW(addmm(zeros({4}), zeros({2, 3}), zeros({3, 5})), ShapeError);
  EXPECT_THROW(matmul(zeros({}), zeros({2})), ShapeError);
  EXPECT_THROW(linear(zeros({2, 3}), zeros({4, 2})), ShapeError);
}

TEST(Matmul, LeadingDimensionsBroadcast) {
  const Tensor a = counting({2, 1, 3, 4});
  const Tensor b = counting({5, 4, 2});
  const Tensor product = matmul(a, b);
  ASSERT_TRUE(same(product.sizes(), IntList{2, 5, 3, 2}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      EXPECT_TRUE(equal(product.select(0, i).select(0, j),
                        mm(a.select(0, i).select(0, 0), b.select(0, j))));
    }
  }
}

TEST(Linear, GradientOfTheWeightIsRowMajorWithoutACopy) {
  const Tensor input = counting({5, 3, 8});
  const Tensor weight = counting({6, 8}).set_requires_grad();
  const Tensor bias = counting({6}).set_requires_grad();
  const Tensor output = linear(input, weight, bias);
  const Tensor seed = ones(output.sizes());
  const int64_t before = hidden_copies().copies;
  backward({output}, {seed});
  EXPECT_EQ(hidden_copies().copies, before);
  EXPECT_TRUE(weight.grad().is_contiguous());
  const Tensor rows = sum(input, {0, 1});
  EXPECT_TRUE(equal(weight.grad(), rows.expand({6, 8}).contiguous()));
  EXPECT_TRUE(equal(bias.grad(), mul(ones({6}), 15)));
}

}  // namespace
}  // namespace lockstep
