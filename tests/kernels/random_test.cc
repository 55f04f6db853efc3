#include "core/ops/random/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/philox.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr int64_t kMany = 1 << 20;

struct Moments {
  double mean = 0;
  double variance = 0;
  double kurtosis = 0;
};

Moments moments(const Tensor& tensor) {
  const std::vector<double> x = values(tensor);
  Moments m;
  for (double v : x) m.mean += v / static_cast<double>(x.size());
  for (double v : x) {
    const double d = (v - m.mean) * (v - m.mean);
    m.variance += d / static_cast<double>(x.size());
    m.kurtosis += d * d / static_cast<double>(x.size());
  }
  m.kurtosis /= m.variance * m.variance;
  return m;
}

TEST(Random, NumbersDoNotDependOnTheThreads) {
  const Tensor input = random_tensor({300, 1001});
  expect_same_bits_for_any_threads([&] {
    manual_seed(5);
    const Tensor a = rand({300, 1001});
    const Tensor b = randn({300, 1001});
    const Tensor c = randn({77777}, DType::kF64);
    const auto [dropped, mask] = native_dropout(input, 0.3);
    return std::vector<Tensor>{a, b, c, dropped, mask};
  });
}

TEST(Random, AnElementIsAFunctionOfItsIndex) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    Generator generator(9);
    const std::vector<double> all = values(randn({1000}, dtype, &generator));
    generator.manual_seed(9);
    const std::vector<double> some = values(randn({7, 11}, dtype, &generator));
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << to_string(dtype);
  }
}

TEST(Random, UniformIsThePublishedFunctionOfKeyAndElement) {
  Generator generator(123456789012345);
  generator.set_position(42, 7);
  const RandomKey key = generator.state();
  const std::vector<double> got = values(rand({1001}, {}, &generator));
  for (size_t i = 0; i < got.size(); ++i) {
    const uint32_t word = philox(key.counter(i / 4), key.key())[i % 4];
    EXPECT_EQ(got[i], static_cast<double>(word >> 8) * 0x1p-24) << i;
  }
}

TEST(Random, CallsStepsAndMicroBatchesDiffer) {
  Generator generator(1);
  std::set<double> firsts;
  for (uint64_t step : {0, 1}) {
    for (uint32_t micro_batch : {0, 1}) {
      generator.set_position(step, micro_batch);
      for (int call = 0; call < 2; ++call) {
        firsts.insert(rand({1}, DType::kF64, &generator).item<double>());
      }
    }
  }
  EXPECT_EQ(firsts.size(), 8u);
}

TEST(Random, UniformHasTheRightMomentsAndRange) {
  Generator generator(2);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Tensor x = rand({kMany}, dtype, &generator);
    const Moments m = moments(x);
    const double step = dtype == DType::kBF16 ? 1.0 / 256 : 0;
    EXPECT_NEAR(m.mean, 0.5 - step / 2, 2e-3) << to_string(dtype);
    EXPECT_NEAR(m.variance, 1.0 / 12, 1e-3) << to_string(dtype);
    for (double v : values(x)) ASSERT_TRUE(v >= 0 && v < 1) << v << " " << to_string(dtype);
  }
  const Tensor y = empty_tensor({kMany}, DType::kF32);
  uniform_(y, -3, 5, &generator);
  EXPECT_NEAR(moments(y).mean, 1, 0.02);
  EXPECT_NEAR(moments(y).variance, 64.0 / 12, 0.02);
}

TEST(Random, NormalHasTheRightMoments) {
  Generator generator(3);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    const Moments m = moments(randn({kMany}, dtype, &generator));
    EXPECT_NEAR(m.mean, 0, 4e-3) << to_string(dtype);
    EXPECT_NEAR(m.variance, 1, 6e-3) << to_string(dtype);
    EXPECT_NEAR(m.kurtosis, 3, 3e-2) << to_string(dtype);
  }
  const Tensor x = empty_tensor({kMany}, DType::kF32);
  normal_(x, 2, 0.5, &generator);
  EXPECT_NEAR(moments(x).mean, 2, 2e-3);
  EXPECT_NEAR(moments(x).variance, 0.25, 2e-3);
}

TEST(Random, NeighboursAreUncorrelated) {
  Generator generator(4);
  const std::vector<double> x = values(randn({kMany}, {}, &generator));
  for (size_t lag : {1, 2, 3, 4, 64, 256}) {
    double sum = 0;
    for (size_t i = 0; i + lag < x.size(); ++i) sum += x[i] * x[i + lag];
    EXPECT_NEAR(sum / static_cast<double>(x.size() - lag), 0, 5e-3) << lag;
  }
}

TEST(Random, BernoulliIsOneAsOftenAsAsked) {
  Generator generator(5);
  const Tensor x = empty_tensor({kMany}, DType::kF32);
  for (double p : {0.0, 0.1, 0.5, 1.0}) {
    EXPECT_NEAR(moments(bernoulli(x, p, &generator)).mean, p, p == 0 || p == 1 ? 0 : 2e-3);
  }
  const Tensor flags = empty_tensor({kMany}, DType::kBool);
  bernoulli_(flags, 0.25, &generator);
  EXPECT_NEAR(moments(flags).mean, 0.25, 2e-3);
}

TEST(Random, DropoutZeroesAndScales) {
  manual_seed(6);
  const Tensor x = random_tensor({1000, 100});
  const auto [y, mask] = native_dropout(x, 0.25);
  const std::vector<double> before = values(x), after = values(y), kept = values(mask);
  for (size_t i = 0; i < before.size(); ++i) {
    const float wanted = static_cast<float>(before[i]) * (1.0F / 0.75F);
    ASSERT_EQ(after[i], kept[i] == 0 ? 0.0 : static_cast<double>(wanted));
  }
  EXPECT_NEAR(moments(mask).mean, 0.75, 5e-3);
  EXPECT_EQ(moments(dropout(x, 1.0, true)).variance, 0);
  EXPECT_TRUE(dropout(x, 0.25, false).is_same(x));
}

TEST(Random, EvaluationDrawsNothing) {
  manual_seed(6);
  const Tensor x = random_tensor({10});
  const RandomKey before = default_generator().state();
  EXPECT_EQ(values(dropout(x, 0.5, false)), values(x));
  EXPECT_EQ(default_generator().state(), before);
}

TEST(Random, NativeDropoutOutsideTrainingKeepsEverything) {
  const Tensor x = random_tensor({10});
  const auto [y, mask] = native_dropout(x, 0.5, false);
  EXPECT_EQ(values(y), values(x));
  EXPECT_EQ(values(mask), std::vector<double>(10, 1));
}

TEST(Random, FillsStridedTensorsInRowMajorOrder) {
  Generator generator(8);
  const Tensor plain = rand({5, 3}, {}, &generator);
  const Tensor strided = empty_tensor({3, 5}, DType::kF32).t();
  generator.manual_seed(8);
  uniform_(strided, 0, 1, &generator);
  EXPECT_EQ(values(strided), values(plain));
}

TEST(Random, RandpermIsAPermutation) {
  manual_seed(1);
  std::vector<double> order = values(randperm(1000));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<double>(i));
  EXPECT_EQ(randperm(0).numel(), 0);
}

TEST(Random, ErrorsNameTheProblem) {
  const Tensor whole = empty_tensor({2}, DType::kI64);
  expect_error<DTypeError>([&] { uniform_(whole); }, "[uniform]", "int64");
  expect_error<Error>([&] { dropout(random_tensor({2}), 1.5, true); }, "[0, 1]", "1.5");
}

}  // namespace
}  // namespace lockstep
