#include "core/ops/reduce/reduce.h"

#include "autograd/autograd.h"
#include "core/device/copies.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/pointwise/pointwise_division.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Reference: joins elements one by one in f64 over the dimensions in `dims`.
Tensor reduce_naively(const Tensor& self, const std::vector<int64_t>& dims, double start,
                      const std::function<double(double, double)>& join) {
  const int64_t rank = self.dim();
  const uint64_t mask = dim_mask("test", dims, rank);
  Dims sizes = to_dims(self.sizes());
  for (int64_t d = 0; d < rank; ++d) {
    if ((mask >> d) & 1) sizes[static_cast<size_t>(d)] = 1;
  }
  const Tensor result = full(sizes, start, {DType::kF64});
  const std::vector<double> elements = values(self);
  for (int64_t i = 0; i < self.numel(); ++i) {
    int64_t rest = i, at = 0;
    const Dims strides = contiguous_strides(sizes);
    for (int64_t d = rank; d-- > 0;) {
      const int64_t place = rest % self.size(d);
      rest /= self.size(d);
      if (!((mask >> d) & 1)) at += place * strides[static_cast<size_t>(d)];
    }
    double& joined = result.data<double>()[at];
    joined = join(joined, elements[static_cast<size_t>(i)]);
  }
  return result;
}

double add(double a, double b) { return a + b; }

/// Shapes and layouts for every path of the reduction: long and short rows, columns, both at once,
/// gaps, and expanded dimensions.
std::vector<Tensor> layouts(DType dtype = DType::kF32) {
  return {random_tensor({3}, dtype),
          random_tensor({5, 7}, dtype),
          random_tensor({300, 40}, dtype),
          random_tensor({40, 300}, dtype).t(),
          random_tensor({4, 300, 17}, dtype),
          random_tensor({6, 5, 130}, dtype).transpose(0, 2),
          random_tensor({20, 33}, dtype).slice(1, 1, 30, 3),
          random_tensor({2, 3, 4, 5}, dtype).permute({2, 0, 3, 1}),
          random_tensor({1, 9}, dtype).expand({6, 9}),
          random_tensor({2, 20000}, dtype)};
}

TEST(Reduce, AddsManyRowsOfManyColumns) {
  // More rows than are added before totals are widened, and more columns than lie in a tile.
  constexpr int64_t kRows = 300, kColumns = 2500;
  const Tensor x = remainder(counting({kRows, kColumns}, DType::kI64), 13);
  Numbers wanted(kColumns);
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    wanted[static_cast<size_t>(i % kColumns)] += static_cast<double>(i % 13);
  }
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32}) {
    const DType result = is_floating(dtype) ? promote(dtype, DType::kF32) : DType::kI64;
    EXPECT_EQ(values(sum(x.to(dtype), {0}, false, result)), wanted) << to_string(dtype);
  }
  EXPECT_EQ(values(sum(x.reshape({3, 100, kColumns}), {0, 1})), wanted);
}

TEST(Reduce, SumsAgreeWithPlainLoopsOverEveryLayoutAndDimension) {
  for (const Tensor& x : layouts()) {
    for (uint64_t mask = 1; mask < (uint64_t{1} << x.dim()); ++mask) {
      std::vector<int64_t> dims;
      for (int64_t d = 0; d < x.dim(); ++d) {
        if ((mask >> d) & 1) dims.push_back(d);
      }
      SCOPED_TRACE(x.shape() + " over " + to_string(dims));
      expect_near(sum(x, dims, true), reduce_naively(x, dims, 0, add), 2e-4, 2e-6);
      const auto larger = [](double a, double b) { return std::max(a, b); };
      expect_near(amax(x, dims, true), reduce_naively(x, dims, -kInfinity, larger), 0, 0);
    }
  }
}

TEST(Reduce, KeepsNoHiddenCopyOfStridedInput) {
  const Tensor x = random_tensor({6, 50, 40}).transpose(0, 2);
  const int64_t before = hidden_copies().copies;
  sum(x, {0});
  sum(x, {1, 2});
  amax(x);
  EXPECT_EQ(hidden_copies().copies, before);
}

TEST(Reduce, EveryDTypeSumsInItsOwnKind) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF64}) {
    const Tensor x = random_tensor({30, 20}, dtype);
    const Tensor got = sum(x, {0});
    EXPECT_EQ(got.dtype(), dtype);
    const double ulp = dtype == DType::kBF16 ? 0x1p-8 : dtype == DType::kF16 ? 0x1p-11 : 1e-15;
    expect_near(got.unsqueeze(0), reduce_naively(x, {0}, 0, add), ulp, ulp);
  }
  const Tensor bytes = full({70}, 255, {DType::kU8});
  EXPECT_EQ(sum(bytes).dtype(), DType::kI64);
  EXPECT_EQ(sum(bytes).item<int64_t>(), 70 * 255);
  EXPECT_EQ(sum(ones({9}, {DType::kBool})).item<int64_t>(), 9);
  EXPECT_EQ(sum(bytes, {}, false, DType::kF32).item<float>(), 70.0F * 255.0F);
}

TEST(Reduce, LongSumsLoseNoDigits) {
  const Tensor x = full({1 << 22}, 0.1F);
  EXPECT_NEAR(sum(x).item<float>(), 0.1F * static_cast<float>(1 << 22), 0.25F);
  EXPECT_NEAR(mean(x).item<float>(), 0.1F, 1e-7F);
  const Tensor columns = full({1 << 16, 8}, 0.1F);
  expect_near(sum(columns, {0}), full({8}, 6553.6), 0, 1e-6);
}

TEST(Reduce, BitsDoNotDependOnThreads) {
  for (const Dims& sizes : {Dims{200000}, Dims{3, 100000}, Dims{1000, 384}, Dims{100, 30, 50}}) {
    const Tensor x = random_tensor(sizes);
    expect_same_bits_for_any_threads([&] {
      return std::vector<Tensor>{sum(x), sum(x, {0}), sum(x, {-1}), mean(x), cumsum(x, -1)};
    });
  }
}

TEST(Reduce, BitsDoNotDependOnWhatLiesBetweenRows) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    for (const int64_t length : {100, 3000, 20000}) {
      const Tensor apart = random_tensor({12, length + 40}, dtype).slice(1, 0, length);
      const Tensor together = apart.contiguous();
      EXPECT_TRUE(equal(apart.sum({1}), together.sum({1}))) << to_string(dtype) << ' ' << length;
      for (int64_t row = 0; row < 12; ++row) {
        const Tensor alone = apart.select(0, row).contiguous();
        EXPECT_TRUE(equal(alone.sum(), together.sum({1}).select(0, row)))
            << to_string(dtype) << ' ' << length << ' ' << row;
      }
    }
  }
}

TEST(Reduce, NothingSumsToZeroAndHasNoMeanOrMaximum) {
  const Tensor nothing = zeros({0, 3});
  EXPECT_EQ(values(sum(nothing, {0})), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(sum(nothing, {1}).numel(), 0);
  EXPECT_TRUE(std::isnan(mean(nothing).item<float>()));
  EXPECT_FALSE(any(nothing).item<bool>());
  EXPECT_TRUE(all(nothing).item<bool>());
  EXPECT_EQ(amax(nothing, {1}).numel(), 0);
  expect_error<IndexError>([&] { amax(nothing, {0}); }, "[amax]", "[0, 3]");
  expect_error<IndexError>([&] { argmin(nothing); }, "[argmin]");
}

TEST(Reduce, ZeroDimensionalTensorsReduceToThemselves) {
  const Tensor x = full({}, 3.5);
  EXPECT_EQ(sum(x, {0}).item<float>(), 3.5F);
  EXPECT_EQ(sum(x, {-1}, true).dim(), 0);
  EXPECT_EQ(amax(x).item<float>(), 3.5F);
  EXPECT_EQ(argmax(x).item<int64_t>(), 0);
  EXPECT_EQ(std::get<1>(max(x, 0)).item<int64_t>(), 0);
  EXPECT_EQ(cumsum(x, 0).item<float>(), 3.5F);
}

TEST(Reduce, MaximaPreferNaNAndTheFirstOfEquals) {
  const Tensor x = tensor_from<double>({1, kNaN, 3, kNaN, 2, 7, 7, 7}, {2, 4});
  EXPECT_TRUE(std::isnan(amax(x).item<double>()));
  const auto [largest, at] = max(x, 1);
  EXPECT_TRUE(std::isnan(values(largest)[0]));
  EXPECT_EQ(values(at), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(std::get<1>(min(x, 1))), (std::vector<double>{1, 0}));
  EXPECT_EQ(argmax(x).item<int64_t>(), 1);
  // Long rows take a different path.
  Tensor row = zeros({300});
  row.slice(0, 100, 200).fill_(2);
  EXPECT_EQ(argmax(row).item<int64_t>(), 100);
  row.slice(0, 250, 251).fill_(kNaN);
  EXPECT_EQ(argmax(row).item<int64_t>(), 250);
}

TEST(Reduce, ExtremesAgreeWithPlainLoopsOverEveryLayoutAndDimension) {
  const auto larger = [](double a, double b) { return b > a || std::isnan(b) ? b : a; };
  const auto smaller = [](double a, double b) { return b < a || std::isnan(b) ? b : a; };
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI64}) {
    for (const Tensor& x : layouts(dtype)) {
      if (is_floating(dtype)) {
        Tensor middle = x;
        while (middle.dim() > 0) middle = middle.select(0, middle.size(0) / 2);
        middle.fill_(kNaN);
      }
      for (int64_t d = 0; d < x.dim(); ++d) {
        SCOPED_TRACE(testing::Message() << name(dtype) << " " << x.shape() << " over " << d);
        expect_near(amax(x, {d}, true), reduce_naively(x, {d}, -kInfinity, larger), 0, 0);
        expect_near(amin(x, {d}, true), reduce_naively(x, {d}, kInfinity, smaller), 0, 0);
      }
    }
  }
}

TEST(Reduce, ArgmaxFollowsAnyDimension) {
  const Tensor x = random_tensor({4, 100, 3}, DType::kF64);
  for (const int64_t dim : {0, 1, 2}) {
    const auto [largest, at] = max(x, dim, true);
    expect_near(largest, amax(x, {dim}, true), 0, 0);
    EXPECT_EQ(values(at), values(argmax(x, dim, true)));
  }
  EXPECT_EQ(argmax(tensor_from<int64_t>({3, 9, 4}, {3})).item<int64_t>(), 1);
}

TEST(Reduce, CumulativeSumsAddAlongTheDimension) {
  const Tensor x = arange(6).reshape({2, 3});
  EXPECT_EQ(values(cumsum(x, 1)), (std::vector<double>{0, 1, 3, 3, 7, 12}));
  EXPECT_EQ(values(cumsum(x, 0)), (std::vector<double>{0, 1, 2, 3, 5, 7}));
  EXPECT_EQ(cumsum(x.to(DType::kBool), 0).dtype(), DType::kI64);
}

TEST(Reduce, AnyAndAllReadEveryDType) {
  const Tensor x = tensor_from<float>({0, -0.0F, 0.5F, 1}, {2, 2});
  EXPECT_EQ(values(any(x, 1)), (std::vector<double>{0, 1}));
  EXPECT_EQ(values(all(x, 1)), (std::vector<double>{0, 1}));
  EXPECT_EQ(any(x).dtype(), DType::kBool);
  EXPECT_EQ(any(full({3}, 2, {DType::kU8})).dtype(), DType::kU8);
}

TEST(Reduce, SumToSizeUndoesBroadcasting) {
  const Tensor x = random_tensor({5, 4, 3}, DType::kF64);
  expect_near(sum_to_size(x, {4, 1}), sum(x, {0, 2}).reshape({4, 1}), 1e-12, 0);
  expect_near(sum_to_size(x, {}), sum(x), 1e-12, 0);
  EXPECT_TRUE(sum_to_size(x, {5, 4, 3}).is_same(x));
  expect_error<ShapeError>([&] { sum_to_size(x, {2, 3}); }, "[sum_to_size]", "[5, 4, 3]", "[2, 3]");
}

TEST(Reduce, MistakesAreNamed) {
  const Tensor x = zeros({2, 3});
  expect_error<IndexError>([&] { sum(x, {2}); }, "[sum]", "2");
  expect_error<ShapeError>([&] { sum(x, {1, -1}); }, "[sum]");
  expect_error<DTypeError>([&] { mean(x.to(DType::kI64)); }, "[mean]", "int64");
  expect_error<ShapeError>([&] { x.item<float>(); }, "[item]", "[2, 3]");
  expect_error<ShapeError>([&] { is_nonzero(x); }, "[is_nonzero]", "6");
}

TEST(HostValue, EqualComparesShapeAndElements) {
  const Tensor x = random_tensor({4, 5});
  EXPECT_TRUE(equal(x, x.clone()));
  EXPECT_TRUE(equal(x.t(), x.t().contiguous()));
  EXPECT_FALSE(equal(x, x.reshape({5, 4})));
  EXPECT_FALSE(equal(full({1}, kNaN), full({1}, kNaN)));
}

TEST(HostValue, EqualComparesInTheDTypeThatBothPromoteTo) {
  const Tensor x = tensor_from<float>({1, 2, 0.1F}, {3});
  EXPECT_TRUE(equal(x, x.to(DType::kF64)));
  EXPECT_FALSE(equal(x, x.to(DType::kBF16)));
  EXPECT_FALSE(equal(x, x.to(DType::kI64)));
  EXPECT_TRUE(equal(tensor_from<int64_t>({1, 0}, {2}), tensor_from<float>({1, 0}, {2})));
  EXPECT_TRUE(equal(tensor_from<int64_t>({1, 0}, {2}), tensor_from<bool>({true, false}, {2})));
}

TEST(Truth, OverAnEmptyListOfDimensionsIsThatOfEachElement) {
  const Tensor x = tensor_from<float>({0, 2, 0, -1}, {2, 2});
  for (const char* name : {"any.dims", "all.dims"}) {
    std::vector<Value> arguments{Value(x), Value(IntList()), Value(true)};
    Stack stack(arguments);
    dispatcher().find(name).call_boxed(stack);
    const Tensor truth = stack.results()[0].tensor();
    EXPECT_EQ(truth.dtype(), DType::kBool);
    expect_near(truth, tensor_from<float>({0, 1, 0, 1}, {2, 2}), 0, 0);
  }
}

TEST(Extremes, OfAllSpreadTheGradientOverNaNWhereTheResultIsNaN) {
  const Tensor x = tensor_from<float>({1, NAN, 3, NAN}, {4}).set_requires_grad();
  max(x).backward();
  expect_near(x.grad(), tensor_from<float>({0, 0.5, 0, 0.5}, {4}), 0, 0);
}

}  // namespace
}  // namespace lockstep
