#include "autograd/vmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/dispatch/call_op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/plugin/plugin.h"
#include "core/tensor/generator.h"
#include "tests/autograd/random_numbers.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::Not;

void expect_equal(const Tensor& got, const Tensor& want) {
  ASSERT_TRUE(same(got.sizes(), want.sizes())) << got.shape() << " and " << want.shape();
  EXPECT_TRUE(equal(got, want));
}

TEST(Vmap, MapsAFunctionOfOneSampleOverABatch) {
  const Tensor x = numbers({3, 4}, 1);
  const Tensor y = numbers({3, 4}, 2);
  const Tensor got = vmap([](const Tensor& a, const Tensor& b) { return sum(a * b); })(x, y);
  expect_close(got, sum(x * y, {1}));
}

TEST(Vmap, InsideATensorHasTheSizesOfOneSample) {
  vmap([](const Tensor& x) {
    EXPECT_TRUE(same(x.sizes(), {2, 3}));
    EXPECT_EQ(x.dim(), 2);
    EXPECT_EQ(x.numel(), 6);
    EXPECT_TRUE(x.is_contiguous());
    EXPECT_TRUE(x.key_set().has(Key::kVmap));
    EXPECT_FALSE(x.requires_grad());
    return x;
  })(numbers({4, 2, 3}, 1));
}

TEST(Vmap, InDimsSayWhereTheSamplesAreAndWhatIsShared) {
  const Tensor x = numbers({4, 3}, 1);
  const Tensor w = numbers({4, 5}, 2);
  const auto product = [](const Tensor& x, const Tensor& w) { return x.unsqueeze(0).mm(w); };
  const Tensor want = x.t().mm(w);
  for (const int64_t dim : {1, -1}) {
    expect_close(vmap(product, {.in_dims = {dim, std::nullopt}})(x, w).squeeze(1), want);
  }
  const Tensor both = vmap(product, {.in_dims = {1, 2}})(x, w.unsqueeze(2).expand({4, 5, 3}));
  expect_close(both.squeeze(1), want);
}

TEST(Vmap, OutDimsSayWhereTheSamplesGo) {
  const Tensor x = numbers({3, 4, 2}, 1);
  const auto twice = [](const Tensor& x) { return x * 2; };
  expect_equal(vmap(twice, {.out_dims = {1}})(x), (x * 2).transpose(0, 1));
  expect_equal(vmap(twice, {.out_dims = {-1}})(x), (x * 2).permute({1, 2, 0}));
  const Tensor shared = numbers({2}, 2);
  const auto constant = [&](const Tensor&) { return shared; };
  expect_equal(vmap(constant)(x), shared.expand({3, 2}));
  EXPECT_TRUE(vmap(constant, {.out_dims = {std::nullopt}})(x).is_same(shared));
}

TEST(Vmap, TakesAndReturnsSeveralTensors) {
  const Tensor x = numbers({3, 4}, 1);
  const auto parts = [](const Tensor& x) { return std::tuple(x.exp(), sum(x)); };
  const auto [first, second] = vmap(parts, {.out_dims = {1, 0}})(x);
  expect_close(first, x.exp().t());
  expect_close(second, sum(x, {1}));
  const std::vector<Tensor> list = vmap([](const Tensor& x) { return x.split(2); })(x);
  expect_equal(list[1], x.slice(1, 2, 4));
  const std::vector<Tensor> sums =
      vmap([](TensorList given) { return std::vector<Tensor>{given[0] + given[1]}; }, {x, x});
  expect_close(sums[0], x * 2);
}

TEST(Vmap, NestedLevelsEqualTwoLoops) {
  const Tensor x = numbers({3, 4}, 1);
  const Tensor y = numbers({5, 4}, 2);
  const auto dot = [](const Tensor& a, const Tensor& b) { return sum(a * b); };
  const auto row = [&](const Tensor& a, const Tensor& ys) {
    return vmap(dot, {.in_dims = {std::nullopt, 0}})(a, ys);
  };
  expect_close(vmap(row, {.in_dims = {0, std::nullopt}})(x, y), x.mm(y.t()));
}

TEST(Vmap, NestedLevelsMayBatchTheSameTensorTwice) {
  const Tensor x = numbers({3, 4, 2}, 1);
  const auto inner = [](const Tensor& x) {
    return vmap([](const Tensor& v) { return sum(v); })(x);
  };
  expect_close(vmap(inner)(x), sum(x, {2}));
  const auto other = [](const Tensor& x) {
    return vmap([](const Tensor& v) { return v.exp(); }, {.in_dims = {1}, .out_dims = {1}})(x);
  };
  expect_close(vmap(other, {.in_dims = {2}, .out_dims = {2}})(x), x.exp());
}

TEST(Vmap, IsRecordedOnTheWholeBatch) {
  const Tensor w = numbers({4, 2}, 1).set_requires_grad();
  const Tensor x = numbers({3, 4}, 2);
  const Tensor y = vmap([&](const Tensor& x) { return sum(tanh(x.unsqueeze(0).mm(w))); })(x);
  ASSERT_TRUE(y.requires_grad());
  sum(y).backward();
  const Tensor got = w.grad();
  w.set_grad({});
  sum(tanh(x.mm(w))).backward();
  expect_close(got, w.grad());
}

TEST(Vmap, AScalarSampleKeepsTheDtypeOfTheCall) {
  const Tensor doubles = numbers({3}, 1).to(DType::kF64);
  const Tensor row = numbers({2}, 2);
  const Tensor got = vmap([&](const Tensor& x) { return row * x; })(doubles);
  EXPECT_EQ(got.dtype(), DType::kF32);
  const Tensor integers = ones({2}, DType::kI64);
  EXPECT_EQ(vmap([&](const Tensor& x) { return integers * x; })(doubles).dtype(), DType::kF64);
  const Tensor single = scalar_tensor(2.0);
  EXPECT_EQ(vmap([&](const Tensor& x) { return single * x; })(doubles).dtype(), DType::kF64);
}

TEST(Vmap, StandsOutsideAutocast) {
  const Tensor w = numbers({5, 4}, 1);
  const Tensor x = numbers({3, 4}, 2);
  const auto layer = [&](const Tensor& x) { return linear(x.unsqueeze(0), w).squeeze(0); };
  const AutocastGuard autocast(DeviceType::kCPU);
  const Tensor got = vmap(layer)(x);
  EXPECT_EQ(got.dtype(), DType::kBF16);
  const Tensor want = linear(x, w);
  const AutocastGuard off(DeviceType::kCPU, false);
  expect_close(got.to(DType::kF32), want.to(DType::kF32), 1e-2);
}

TEST(Vmap, AnEmptyBatchGivesEmptyResults) {
  const Tensor got = vmap([](const Tensor& x) { return sum(x.exp() + 1); })(empty({0, 3}));
  EXPECT_TRUE(same(got.sizes(), {0}));
}

// --- writing in place ----------------------------------------------------------------------------

TEST(VmapInPlace, WritesThroughToTheBatch) {
  const Tensor x = numbers({3, 4}, 1);
  const Tensor before = x.clone();
  vmap([](const Tensor& x) { return x.mul_(x); })(x);
  expect_close(x, before * before);
  vmap([](const Tensor& x) {
    x.select(0, 1).zero_();
    return x;
  })(x);
  EXPECT_EQ(sum(abs(x.select(1, 1))).item<float>(), 0.0f);
}

TEST(VmapInPlace, ViewsOfASampleInPlaceLeaveTheBatchAsItIs) {
  const Operator* op = dispatcher().find_or_null("transpose_");
  if (op == nullptr) GTEST_SKIP() << "views have no in-place forms";
  const Tensor x = numbers({3, 2, 4}, 1);
  const Tensor got = vmap([](const Tensor& x) {
    call_op("transpose_", {x, 0, 1});
    EXPECT_TRUE(same(x.sizes(), {4, 2}));
    return x * 2;
  })(x);
  expect_equal(got, x.transpose(1, 2) * 2);
  EXPECT_TRUE(same(x.sizes(), {3, 2, 4}));
}

TEST(VmapInPlace, WritesIntoWhatIsMadeLikeASample) {
  const Tensor x = numbers({3, 4}, 1);
  const Tensor got = vmap([](const Tensor& x) {
    const Tensor made = zeros_like(x);
    made.slice(0, 0, 2).copy_(x.slice(0, 2, 4));
    return made;
  })(x);
  expect_equal(got.slice(1, 0, 2), x.slice(1, 2, 4));
}

TEST(VmapInPlace, OfASampleIntoASharedTensorIsRefused) {
  const Tensor shared = zeros({4});
  const Tensor x = numbers({3, 4}, 1);
  EXPECT_THROWS(vmap([&](const Tensor& x) { return shared.add_(x); })(x), AutogradError,
                "would write every sample of a batch into one tensor");
  EXPECT_EQ(sum(shared).item<float>(), 0.0f);
  const auto inner = [&](const Tensor& row) {
    return vmap([&](const Tensor& y) { return row.add_(y); })(x);
  };
  EXPECT_THROWS(vmap(inner)(x.clone()), AutogradError, "not batched by the same vmap");
}

TEST(VmapInPlace, OutFormsAreRefused) {
  const Tensor x = numbers({3, 4}, 1);
  EXPECT_THROWS(vmap([&](const Tensor& x) { return add_out(empty({4}), x, x); })(x), AutogradError,
                "out= cannot be batched");
}

// --- errors --------------------------------------------------------------------------------------

TEST(VmapErrors, InputsThatAreNoBatch) {
  const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
  EXPECT_THROWS(vmap(add)(ones({3}), ones({4})), ShapeError, "different numbers of samples");
  const auto three = [](const Tensor& a, const Tensor& b, const Tensor& c) { return a + b + c; };
  EXPECT_THROWS(vmap(three)(ones({3}), ones({3}), ones({4})), ShapeError,
                "input 0 holds 3, input 2 (shape [4], in_dim 0) holds 4");
  EXPECT_THROWS(vmap(add, {.in_dims = {std::nullopt, std::nullopt}})(ones({3}), ones({3})),
                ShapeError, "no input is a batch");
  EXPECT_THROWS(vmap(add, {.in_dims = {0}})(ones({3}), ones({3})), ShapeError, "in_dims");
  EXPECT_THROWS(vmap(add, {.in_dims = {0, 1}})(ones({3}), ones({3})), IndexError,
                "input 1 has no dimension 1");
  EXPECT_THROWS(vmap(add)(ones({}), ones({3})), IndexError, "input 0 has no dimension 0");
  const auto once = [](const Tensor& x) { return x * 1; };
  const std::vector<Tensor> rows{sample::vector({1, 2}), sample::vector({3, 4})};
  EXPECT_TRUE(equal(vmap(once, {.in_dims = {-1}})(stack(rows)), stack(rows).t()));
  EXPECT_THROWS(vmap(once, {.in_dims = {-3}})(stack(rows)), IndexError, "expected one in [-2, 1]");
}

TEST(VmapErrors, OutDimsThatDoNotFit) {
  const auto same = [](const Tensor& x) { return x; };
  EXPECT_THROWS(vmap(same, {.out_dims = {std::nullopt}})(ones({3})), ShapeError,
                "differs from sample to sample");
  EXPECT_THROWS(vmap(same, {.out_dims = {0, 0}})(ones({3})), ShapeError, "out_dims");
  EXPECT_THROWS(vmap(same, {.out_dims = {1}})(ones({3})), IndexError, "output 0");
}

TEST(VmapErrors, ValuesOnTheHostAndSizesThatDependOnValues) {
  const Tensor x = ones({3, 4});
  EXPECT_THROWS(vmap([](const Tensor& x) { return x * sum(x).item<float>(); })(x), AutogradError,
                "returns one number");
  EXPECT_THROWS(vmap([](const Tensor& x) { return nonzero(x); })(x), AutogradError,
                "as many elements as");
  EXPECT_THROWS(vmap([](const Tensor& x) { return masked_select(x, gt(x, 0)); })(x), AutogradError,
                "as many elements as");
}

TEST(VmapErrors, ASampleThatIsMadeALeafOrGoneBackFrom) {
  const Tensor x = ones({3, 4});
  EXPECT_THROWS(vmap([](const Tensor& x) { return x.set_requires_grad(); })(x), AutogradError,
                "use grad(f)");
  const auto backward = [](const Tensor& x) {
    sum(x).backward();
    return x;
  };
  EXPECT_THROWS(vmap(backward)(x), AutogradError, "does not require grad");
}

TEST(VmapErrors, ASampleThatLeftItsFunction) {
  Tensor kept;
  const auto keep = [&](const Tensor& x) { return kept = x; };
  vmap(keep)(ones({3}));
  EXPECT_THROWS(kept + 1, AutogradError, "does not run here");
  EXPECT_THROWS(vmap([&](const Tensor& x) { return x + kept; })(ones({3})), AutogradError,
                "does not run here");
  EXPECT_THROWS(vmap([&](const Tensor&) { return kept; })(ones({3})), AutogradError,
                "does not run here");
  std::string message;
  vmap([&](const Tensor& x) {
    std::thread([&, x] {
      try {
        x.exp();
      } catch (const AutogradError& error) {
        message = error.what();
      }
    }).join();
    return x;
  })(ones({3}));
  EXPECT_NE(message.find("does not run here"), std::string::npos);
}

TEST(VmapErrors, AnExceptionLeavesNoLevelBehind) {
  const auto fail = [](const Tensor& x) -> Tensor {
    vmap([](const Tensor&) -> Tensor { throw ShapeError("inner"); })(x);
    return x;
  };
  EXPECT_THROW(vmap(fail)(ones({2, 3})), ShapeError);
  EXPECT_TRUE(vmap_levels().empty());
  EXPECT_FALSE(detail::thread_keys.included.has(Key::kVmap));
  EXPECT_NO_THROW(rand({2}));
}

// --- random numbers ------------------------------------------------------------------------------

TEST(VmapRandomness, IsAnErrorUnlessChosen) {
  const Tensor x = ones({3, 4});
  EXPECT_THROWS(vmap([](const Tensor& x) { return x + rand({4}); })(x), AutogradError,
                "draws random numbers");
  EXPECT_THROWS(vmap([](const Tensor& x) { return dropout(x, 0.5, true); })(x), AutogradError,
                "Set VmapOptions::randomness");
  expect_equal(vmap([](const Tensor& x) { return dropout(x, 0.5, false); })(x), x);
}

TEST(VmapRandomness, SameGivesEverySampleWhatALoopFromOneSeedDraws) {
  const Tensor x = numbers({3, 8}, 1);
  const auto noisy = [](const Tensor& x) {
    return dropout(x, 0.5, true) + rand({8}) + call_op("bernoulli", {sigmoid(x)}) + randperm(8) +
           uniform_(zeros_like(x));
  };
  manual_seed(5);
  const Tensor got = vmap(noisy, {.randomness = Randomness::kSame})(x);
  for (int64_t i = 0; i < 3; ++i) {
    manual_seed(5);
    expect_close(got.select(0, i), noisy(x.select(0, i)));
  }
}

TEST(VmapRandomness, DifferentDrawsForTheWholeBatchAtOnce) {
  const VmapOptions options{.randomness = Randomness::kDifferent};
  const Tensor x = ones({3, 8});
  manual_seed(5);
  const Tensor got = vmap([](const Tensor&) { return rand({8}); }, options)(x);
  manual_seed(5);
  expect_equal(got, rand({3, 8}));
  manual_seed(6);
  const Tensor dropped = vmap([](const Tensor& x) { return dropout(x, 0.5, true); }, options)(x);
  manual_seed(6);
  expect_equal(dropped, dropout(x, 0.5, true));
  const Tensor shared = ones({8});
  for (const auto& draw : std::vector<TensorFunction>{
           [&](TensorList) { return dropout(shared, 0.5, true); },
           [&](TensorList) { return randperm(8); },
           [&](TensorList) { return bernoulli(shared, 0.5); },
           [&](TensorList given) { return uniform_(zeros_like(given[0])); },
           [&](TensorList) { return call_op("rand_like", {shared}); },
           [&](TensorList) { return call_op("normal.Tensor_float", {shared}); }}) {
    const Tensor drawn =
        vmap([&](TensorList given) { return std::vector{draw(given)}; }, TensorList{x}, options)[0];
    ASSERT_TRUE(same(drawn.sizes(), {3, 8}));
    EXPECT_FALSE(equal(drawn.select(0, 0), drawn.select(0, 1)));
  }
  EXPECT_THROWS(vmap([&](const Tensor&) { return uniform_(shared); }, options)(x), AutogradError,
                "would write every sample");
}

TEST(VmapRandomness, IsThatOfTheVmapAfterOtherOperatorsToo) {
  const auto after = [](const Tensor& x) {
    const Tensor y = x * 2;
    return rand({4}) + y * 0;
  };
  const Tensor drawn = vmap(after, {.randomness = Randomness::kDifferent})(ones({3}));
  EXPECT_FALSE(equal(drawn.select(0, 0), drawn.select(0, 1)));
  EXPECT_THROW(vmap(after)(ones({3})), AutogradError);
}

TEST(VmapRandomness, BelongsToTheInnermostVmap) {
  const Tensor x = ones({2, 3});
  const auto noise = [](const Tensor&) { return rand({4}); };
  const auto nested = [&](Randomness outer, Randomness inner) {
    return vmap([&](const Tensor& row) { return vmap(noise, {.randomness = inner})(row); },
                {.randomness = outer})(x);
  };
  const Tensor rows = nested(Randomness::kDifferent, Randomness::kSame);
  EXPECT_TRUE(equal(rows.select(1, 0), rows.select(1, 2)));
  EXPECT_FALSE(equal(rows.select(0, 0), rows.select(0, 1)));
  const Tensor columns = nested(Randomness::kSame, Randomness::kDifferent);
  EXPECT_TRUE(equal(columns.select(0, 0), columns.select(0, 1)));
  EXPECT_FALSE(equal(columns.select(1, 0), columns.select(1, 2)));
  EXPECT_THROW(nested(Randomness::kError, Randomness::kSame), AutogradError);
}

// --- rules and what happens without one ----------------------------------------------------------

TEST(VmapFallback, RunsOncePerSampleAndIsCounted) {
  forget_operators_run_per_sample();
  const Tensor x = numbers({3, 4}, 1);
  const Tensor source = numbers({4}, 2);
  const Tensor got = vmap([&](const Tensor& x) { return masked_scatter(x, gt(x, 0), source); })(x);
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor row = x.select(0, i);
    expect_equal(got.select(0, i), masked_scatter(row, gt(row, 0), source));
  }
  EXPECT_THAT(operators_run_per_sample(), Contains("masked_scatter"));
  EXPECT_THAT(operators_run_per_sample(), Not(Contains("gt.Scalar")));
  EXPECT_THROWS(
      vmap([&](const Tensor& x) { return masked_scatter(x, gt(x, 0), source); })(empty({0, 4})),
      ShapeError, "at least one sample");
}

TEST(VmapFallback, IsDifferentiableSampleBySample) {
  const Tensor x = numbers({3, 4}, 1).set_requires_grad();
  const Tensor source = numbers({4}, 2).set_requires_grad();
  const auto scatter = [&](const Tensor& x) { return masked_scatter(x, gt(x, 0), source); };
  const std::vector<Tensor> got = grad({sum(square(vmap(scatter)(x)))}, {x, source});
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < 3; ++i) rows.push_back(scatter(x.select(0, i)));
  const std::vector<Tensor> want = grad({sum(square(stack(rows)))}, {x, source});
  expect_close(got[0], want[0]);
  expect_close(got[1], want[1]);
}

TEST(VmapOfPlugins, UsesTheirBatchingRules) {
  const auto path = std::filesystem::path(LOCKSTEP_TEST_PLUGINS) / "libelementwise.so";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "not built here";
  const Plugin plugin = load_library(path);
  forget_operators_run_per_sample();
  const Tensor x = numbers({3, 4}, 1);
  const auto clamp = [](const Tensor& x) { return call_op("test::scale_clamp", {x, 2.0}); };
  expect_close(vmap(clamp)(x), clamp(x));
  EXPECT_THAT(operators_run_per_sample(), Not(Contains("test::scale_clamp")));
  const Tensor changed = x.clone();
  vmap([](const Tensor& x) { return call_op("test::scale_clamp_", {x, 2.0}); })(changed);
  expect_close(changed, clamp(x));
}

}  // namespace
}  // namespace lockstep
