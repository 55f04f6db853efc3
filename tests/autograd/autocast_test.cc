#include "autograd/autocast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/dispatch/call_op.h"
#include "core/dispatch/op.h"
#include "core/dispatch/op_counter.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/advanced_index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/plugin/plugin.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"
#include "tests/conformance/elements.h"

namespace lockstep {
namespace {

using sample::elements;
using ::testing::ElementsAre;
using Doubles = std::vector<double>;

constexpr DeviceType kOnCPU = DeviceType::kCPU;

Tensor matrix(Doubles values, DType dtype = DType::kF32) {
  const Tensor made = empty({2, 2}, dtype);
  set_elements(made, values);
  return made;
}
Tensor weight() { return matrix({1.5, -2, 0.25, 3}).set_requires_grad(); }

/// Number of casts made while `work` runs.
template <class Work>
int64_t casts_in(Work work) {
  OpCounter counter;
  {
    const ModeGuard on(counter);
    work();
  }
  int64_t casts = 0;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const auto found = counter.counts(phase).find("_to_copy");
    if (found != counter.counts(phase).end()) casts += found->second.calls;
  }
  return casts;
}

// A composite without an autocast class: the class of the operator in its body applies.
LS_OP(autocast_test_body, Tensor(const Tensor&, const Tensor&),
      "autocast_test_body(Tensor self, Tensor other) -> Tensor")
    .composite([](const Tensor& self, const Tensor& other) { return mm(self, other); });
// A composite whose class applies to its body.
LS_OP(autocast_test_f32, Tensor(const Tensor&, const Tensor&),
      "autocast_test_f32(Tensor self, Tensor other) -> Tensor")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& other) { return mm(self, other); });

TEST(Autocast, IsOffAtFirstAndOnInsideARegion) {
  EXPECT_FALSE(is_autocast_enabled(kOnCPU));
  {
    const AutocastGuard region(kOnCPU, true, DType::kF16);
    EXPECT_TRUE(is_autocast_enabled(kOnCPU));
    EXPECT_EQ(autocast_dtype(kOnCPU), DType::kF16);
    EXPECT_FALSE(is_autocast_enabled(DeviceType::kCUDA));
  }
  EXPECT_FALSE(is_autocast_enabled(kOnCPU));
  EXPECT_EQ(autocast_dtype(kOnCPU), DType::kBF16);
}

TEST(Autocast, LowerPrecisionOperatorsGetTheRegionsDType) {
  const Tensor x = matrix({1, 2, 3, 4});
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const AutocastGuard region(kOnCPU, true, dtype);
    EXPECT_EQ(mm(x, x).dtype(), dtype);
    EXPECT_EQ(linear(x, x, {}).dtype(), dtype);
    EXPECT_EQ(mm(x.to(DType::kBF16), x.to(DType::kF16)).dtype(), dtype);
  }
  EXPECT_EQ(mm(x, x).dtype(), DType::kF32);
}

TEST(Autocast, F32OperatorsGetHalvesAsF32) {
  const Tensor x = matrix({1, 2, 3, 4}, DType::kBF16);
  EXPECT_EQ(softmax(x, -1).dtype(), DType::kBF16);
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(softmax(x, -1).dtype(), DType::kF32);
  EXPECT_EQ(exp(x.to(DType::kF16)).dtype(), DType::kF32);
  EXPECT_EQ(elements(exp(x)), elements(exp(x.to(DType::kF32))));
}

TEST(Autocast, PromotingOperatorsGetTheWidest) {
  const Tensor f32 = matrix({1, 2, 3, 4});
  const Tensor bf16 = f32.to(DType::kBF16);
  const AutocastGuard region(kOnCPU);
  const auto joined = [](const Tensor& a, const Tensor& b) {
    const std::vector<Tensor> list = {a, b};
    return cat(list, 0).dtype();
  };
  EXPECT_EQ(joined(bf16, f32), DType::kF32);
  EXPECT_EQ(joined(bf16, bf16), DType::kBF16);
  EXPECT_EQ(joined(bf16, f32.to(DType::kF16)), DType::kF32);
  EXPECT_EQ(joined(bf16, f32.to(DType::kF64)), DType::kF64);
}

TEST(Autocast, WhatIsNeverCastDoesNotWiden) {
  const Tensor bf16 = matrix({1, 2, 3, 4}, DType::kBF16), f64 = matrix({1, 2, 3, 4}, DType::kF64);
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(casts_in([&] { cat({bf16, f64}, 0); }), 0);
  const std::vector<Tensor> second_column = {Tensor(), tensor_from<int64_t>({1}, {1})};
  const Tensor changed = index_put(bf16, second_column, full({2, 1}, 7.0), false);
  EXPECT_EQ(changed.dtype(), DType::kF32);
  EXPECT_THAT(elements(changed), ElementsAre(1, 7, 3, 7));
}

TEST(Autocast, APreparedCastIsTakenWhileItHasMemoryAndGradientsReachTheWeight) {
  const Tensor input = matrix({1, 2, 3, 4}), plain = weight(), prepared = weight();
  const auto gradient_of = [&](const Tensor& of) {
    of.set_grad({});
    const AutocastGuard region(kOnCPU);
    sum(mm(input, of)).backward();
    return elements(of.grad());
  };
  const Doubles expected = gradient_of(plain);
  set_prepared_cast(prepared, matrix({8, 0, 0, 8}, DType::kBF16));
  EXPECT_EQ(gradient_of(prepared), expected);
  {
    const AutocastGuard region(kOnCPU);
    EXPECT_THAT(elements(mm(input, prepared)), ElementsAre(8, 16, 24, 32));
    EXPECT_THAT(elements(exp(prepared)), ::testing::Not(ElementsAre(0, 0, 0, 0)))
        << "operators in f32 read the weight";
    // An activation checkpoint keeps no casts.
    const AutocastGuard recomputing(kOnCPU, true, DType::kBF16, /*cache_enabled=*/false);
    EXPECT_THAT(elements(mm(input, prepared)), ElementsAre(8, 16, 24, 32));
  }
  set_prepared_cast(prepared, {});
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(elements(mm(input, prepared)), elements(mm(input, plain)));
}

TEST(KeptCast, IsMadeOnceForAllRegionsUntilTheWeightChanges) {
  const Tensor input = matrix({1, 2, 3, 4}), w = weight();
  keep_cast(w);
  const auto product = [&] {
    const AutocastGuard region(kOnCPU);
    return mm(input, w);
  };
  product();
  EXPECT_EQ(casts_in([&] { product(); }), 1) << "of the input alone";
  w.detach().fill_(2);
  EXPECT_FALSE(kept_cast(w).defined());
  EXPECT_EQ(casts_in([&] { EXPECT_THAT(elements(product()), ElementsAre(6, 6, 14, 14)); }), 2);
  keep_cast(w, false);
  EXPECT_EQ(casts_in([&] { product(); }), 2);
}

TEST(KeptCast, WrittenBesideTheWeightItIsTaken) {
  const Tensor input = matrix({1, 2, 3, 4}), w = weight();
  keep_cast(w);
  const auto product = [&] {
    const AutocastGuard region(kOnCPU);
    return mm(input, w);
  };
  EXPECT_FALSE(kept_cast(w).defined()) << "no region has cast it";
  product();
  const Tensor cast = kept_cast(w);
  EXPECT_EQ(cast.dtype(), DType::kBF16);
  w.detach().fill_(2);
  cast.fill_(2);
  renew_kept_cast(w);
  EXPECT_EQ(casts_in([&] { EXPECT_THAT(elements(product()), ElementsAre(6, 6, 14, 14)); }), 1);
}

TEST(KeptCast, GivesTheGradientsOfACast) {
  const Tensor input = matrix({1, 2, 3, 4}), plain = weight(), keeping = weight();
  keep_cast(keeping);
  for (int i = 0; i < 2; ++i) {
    for (const Tensor& each : {plain, keeping}) {
      const AutocastGuard region(kOnCPU);
      sum(mm(input, each)).backward();
    }
    EXPECT_EQ(elements(keeping.grad()), elements(plain.grad()));
  }
}

TEST(KeptCast, AGraphKeepsTheValuesThatItSaved) {
  const Tensor x = matrix({1, 2, 3, 4}).set_requires_grad(), w = weight();
  keep_cast(w);
  const auto product = [&] {
    const AutocastGuard region(kOnCPU);
    return sum(mm(x, w));
  };
  const Tensor before = product();
  w.detach().fill_(2);
  product();  // casts the weight again
  before.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(-0.5, 3.25, -0.5, 3.25));
}

TEST(KeptCast, IsNotMadeInInferenceMode) {
  const Tensor input = matrix({1, 2, 3, 4}), w = weight();
  keep_cast(w);
  {
    const InferenceModeGuard inference;
    const AutocastGuard region(kOnCPU);
    mm(input, w);
  }
  EXPECT_FALSE(kept_cast(w).defined());
  const AutocastGuard region(kOnCPU);
  sum(mm(input, w)).backward();
  EXPECT_TRUE(kept_cast(w).defined());
}

TEST(KeptCast, OfSeveralLeavesLieSideBySide) {
  const Tensor x = matrix({1, 2, 3, 4});
  const Tensor first = weight(), second = weight(), third = weight();
  keep_casts_side_by_side({first, second, third});
  for (const Tensor& each : {first, second, third}) keep_cast(each);
  const auto cast_all = [&](DType dtype) {
    const AutocastGuard region(kOnCPU, true, dtype);
    for (const Tensor& each : {first, second, third}) mm(x, each);
  };
  const auto place = [](const Tensor& leaf) {
    return static_cast<const std::byte*>(kept_cast(leaf).data());
  };
  cast_all(DType::kBF16);
  EXPECT_EQ(place(second), place(first) + 8);
  EXPECT_EQ(place(third), place(first) + 16);
  EXPECT_EQ(kept_cast(first).storage()->parent()->bytes(), 24u);
  EXPECT_THAT(elements(kept_cast(second)), ElementsAre(1.5, -2, 0.25, 3));
  const Tensor saved = kept_cast(first);
  first.detach().fill_(2);
  cast_all(DType::kBF16);
  EXPECT_NE(place(first), saved.data()) << "a graph may have saved the old cast";
  EXPECT_THAT(elements(saved), ElementsAre(1.5, -2, 0.25, 3));
  second.detach().fill_(3);
  third.detach().fill_(4);
  cast_all(DType::kBF16);
  EXPECT_EQ(place(second), place(first) + 8) << "the others follow to the new row";
  EXPECT_EQ(place(third), place(first) + 16);
  EXPECT_THAT(elements(kept_cast(first)), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(elements(kept_cast(third)), ElementsAre(4, 4, 4, 4));
  cast_all(DType::kF16);
  EXPECT_EQ(kept_cast(third).dtype(), DType::kF16);
  EXPECT_EQ(place(third), place(first) + 16);
  keep_cast(first, false);
  EXPECT_FALSE(kept_cast(first).defined());
  keep_cast(first);
  keep_cast(first);
  cast_all(DType::kF16);
  EXPECT_TRUE(kept_cast(first).defined());
}

TEST(KeptCast, IsTakenForItsOwnDtypeAlone) {
  const Tensor input = matrix({1, 2, 3, 4}), w = weight();
  set_prepared_cast(w, matrix({8, 0, 0, 8}, DType::kBF16));
  EXPECT_FALSE(kept_cast(w).defined()) << "it was given, not kept";
  const AutocastGuard region(kOnCPU, true, DType::kF16);
  EXPECT_EQ(elements(mm(input, w)), elements(mm(input, weight())));
  keep_cast(w);
  EXPECT_EQ(casts_in([&] { mm(input, w); }), 1);
  clear_autocast_cache();
  EXPECT_EQ(casts_in([&] { mm(input, w); }), 2) << "the weight's is kept from now on";
  clear_autocast_cache();
  EXPECT_EQ(casts_in([&] { mm(input, w); }), 1) << "the input's";
}

TEST(KeptCast, APreparedCastThatDoesNotFitIsRefused) {
  const Tensor w = weight();
  EXPECT_THROWS(set_prepared_cast(w, empty({4}, DType::kBF16)), ShapeError,
                "[autocast] a prepared cast: expected a dense tensor of sizes [2, 2], got [4].");
  EXPECT_THROWS(set_prepared_cast(w, matrix({1, 2, 3, 4}, DType::kBF16).t()), ShapeError,
                "expected a dense tensor of sizes [2, 2]");
  EXPECT_THROWS(set_prepared_cast(w, matrix({1, 2, 3, 4}, DType::kI64)), DTypeError,
                "[autocast] a prepared cast: expected a floating dtype on cpu, got int64[2, 2]");
  EXPECT_THROWS(set_prepared_cast(w, empty({2, 2}, {DType::kBF16, kMeta})), DTypeError,
                "expected a floating dtype on cpu");
}

TEST(KeptCast, APreparedCastWithoutMemoryIsNotTaken) {
  const Tensor input = matrix({1, 2, 3, 4}), w = weight();
  const Tensor nothing(make_ref<TensorImpl>(make_ref<Storage>(nullptr, size_t{8}, kCPU),
                                            IntList({2, 2}), IntList({2, 1}), 0, DType::kBF16));
  set_prepared_cast(w, nothing);
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(elements(mm(input, w)), elements(mm(input, weight())));
}

TEST(Autocast, OperatorsWithoutAClassGetWhatTheyAreGiven) {
  const Tensor x = matrix({1, 2, 3, 4}, DType::kBF16);
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(casts_in([&] {
              EXPECT_EQ((x * x).dtype(), DType::kBF16);
              EXPECT_EQ((x + x.to(DType::kBF16)).dtype(), DType::kBF16);
            }),
            0);
  EXPECT_EQ(dispatcher().find("mul.Tensor").explain(Key::kAutocast), "skipped");
  EXPECT_EQ(dispatcher().find("mm").explain(Key::kAutocast), "fallback of the key");
}

TEST(Autocast, F64AndIntegersAreNeverCast) {
  const Tensor x = matrix({1, 2, 3, 4}, DType::kF64);
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(mm(x, x).dtype(), DType::kF64);
  EXPECT_EQ(softmax(x, -1).dtype(), DType::kF64);
  EXPECT_EQ(sum(x.to(DType::kI64)).dtype(), DType::kI64);
}

TEST(Autocast, InPlaceAndOutFormsAreLeftAlone) {
  const Tensor x = matrix({1, 2, 3, 4});
  const Tensor out = empty({2, 2});
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(casts_in([&] { mm_out(out, x, x); }), 0);
  EXPECT_EQ(dispatcher().find("mm.out").explain(Key::kAutocast), "skipped");
  EXPECT_EQ(dispatcher().find("exp_").explain(Key::kAutocast), "skipped");
}

TEST(Autocast, ACompositeWithoutAClassLeavesItToItsBody) {
  const Tensor x = matrix({1, 2, 3, 4});
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(op_autocast_test_body(x, x).dtype(), DType::kBF16);
}

TEST(Autocast, AClassCoversWhatTheOperatorCalls) {
  const Tensor x = matrix({1, 2, 3, 4}, DType::kBF16);
  const AutocastGuard region(kOnCPU);
  EXPECT_EQ(op_autocast_test_f32(x, x).dtype(), DType::kF32);
}

TEST(Autocast, F32WeightsGetF32Gradients) {
  const Tensor w = weight();
  const Tensor x = matrix({1, 2, 3, 4});
  Tensor loss;
  {
    const AutocastGuard region(kOnCPU);
    loss = sum(mm(x, w));
  }
  EXPECT_EQ(loss.dtype(), DType::kF32);
  loss.backward();
  EXPECT_EQ(w.grad().dtype(), DType::kF32);
  EXPECT_THAT(elements(w.grad()), ElementsAre(4, 4, 6, 6));
}

TEST(Autocast, CastsAreRecordedAsThoughWrittenByHand) {
  const Tensor w = weight();
  const AutocastGuard region(kOnCPU);
  const Tensor y = mm(w, w);
  EXPECT_EQ(y.grad_fn()->name(), "MmBackward0");
  EXPECT_EQ(y.grad_fn()->next_edges()[0].node->name(), "ToCopyBackward0");
}

TEST(Autocast, WeightsAreCastOncePerRegion) {
  const Tensor w = weight();
  const Tensor x = matrix({1, 2, 3, 4});
  const auto two_products = [&] {
    const AutocastGuard region(kOnCPU);
    const Tensor lower = x.to(DType::kBF16);
    EXPECT_EQ(casts_in([&] {
                mm(lower, w);
                mm(lower, w);
              }),
              1);
  };
  two_products();
  two_products();  // the cache was cleared when the region ended
}

TEST(Autocast, AnInnerRegionKeepsTheCacheOfTheOuter) {
  const Tensor w = weight();
  const AutocastGuard outer(kOnCPU);
  mm(w, w);
  { const AutocastGuard inner(kOnCPU, false); }
  EXPECT_EQ(casts_in([&] { mm(w, w); }), 0);
  clear_autocast_cache();
  EXPECT_EQ(casts_in([&] { mm(w, w); }), 1);
}

TEST(Autocast, OnlyF32LeavesThatRequireGradAreKept) {
  const Tensor constant = matrix({1, 2, 3, 4});
  const Tensor w = weight();
  const Tensor intermediate = w * 2;
  const Tensor view = w.t();
  const AutocastGuard region(kOnCPU);
  for (const Tensor& tensor : {constant, intermediate, view}) {
    EXPECT_EQ(casts_in([&] {
                mm(tensor, constant.to(DType::kBF16));
                mm(tensor, constant.to(DType::kBF16));
              }),
              4)
        << to_string(tensor);
  }
}

TEST(Autocast, WithoutTheCacheEveryUseCasts) {
  const Tensor w = weight();
  const AutocastGuard region(kOnCPU, true, DType::kBF16, false);
  EXPECT_EQ(casts_in([&] {
              mm(w, w);
              mm(w, w);
            }),
            4);
}

TEST(Autocast, ACastMadeUnderNoGradDoesNotCutTheGraph) {
  const Tensor w = weight();
  const Tensor x = matrix({1, 2, 3, 4});
  Tensor y;
  {
    const AutocastGuard region(kOnCPU);
    {
      const NoGradGuard no_grad;
      EXPECT_FALSE(mm(x, w).requires_grad());
    }
    y = mm(x, w);
    const NoGradGuard no_grad;
    EXPECT_FALSE(mm(x, w).requires_grad());
  }
  sum(y).backward();
  EXPECT_THAT(elements(w.grad()), ElementsAre(4, 4, 6, 6));
}

TEST(Autocast, AWeightThatChangedIsCastAgain) {
  const Tensor w = weight();
  const Tensor one = matrix({1, 0, 0, 1}, DType::kBF16);
  const NoGradGuard no_grad;
  const AutocastGuard region(kOnCPU);
  EXPECT_THAT(elements(mm(one, w)), ElementsAre(1.5, -2, 0.25, 3));
  w.fill_(7);
  EXPECT_THAT(elements(mm(one, w)), ElementsAre(7, 7, 7, 7));
}

TEST(Autocast, TwoUsesOfAKeptCastAddUpInTheGradient) {
  const Tensor w = weight();
  const Tensor x = matrix({1, 2, 3, 4});
  {
    const AutocastGuard region(kOnCPU);
    sum(mm(x, w)).backward();
    sum(mm(x, w)).backward();  // the cached cast is used by a second graph
  }
  EXPECT_THAT(elements(w.grad()), ElementsAre(8, 8, 12, 12));
}

TEST(Autocast, ADisabledRegionIsAnIsland) {
  const Tensor x = matrix({1, 2, 3, 4});
  const AutocastGuard outer(kOnCPU);
  {
    const AutocastGuard island(kOnCPU, false);
    EXPECT_FALSE(is_autocast_enabled(kOnCPU));
    EXPECT_FALSE(detail::thread_keys.included.has(Key::kAutocast)) << "calls come to no cast";
    EXPECT_EQ(mm(x, x).dtype(), DType::kF32);
    const AutocastGuard inner(kOnCPU, true, DType::kF16);
    EXPECT_EQ(mm(x, x).dtype(), DType::kF16);
  }
  EXPECT_EQ(mm(x, x).dtype(), DType::kBF16);
}

TEST(Autocast, RegionsAreOfOneDeviceType) {
  const Tensor x = matrix({1, 2, 3, 4});
  const Tensor shapes = empty({2, 2}, {DType::kF32, kMeta});
  const AutocastGuard region(DeviceType::kMeta);
  EXPECT_EQ(mm(x, x).dtype(), DType::kF32);
  EXPECT_EQ(mm(shapes, shapes).dtype(), DType::kBF16);
  const AutocastGuard both(kOnCPU, true, DType::kF16);
  EXPECT_EQ(mm(x, x).dtype(), DType::kF16);
  EXPECT_EQ(mm(shapes, shapes).dtype(), DType::kBF16);
}

TEST(Autocast, ExceptionsEndRegions) {
  const Tensor w = weight();
  try {
    const AutocastGuard region(kOnCPU);
    mm(w, empty({3, 3}));
    FAIL() << "sizes differ";
  } catch (const ShapeError&) {
  }
  EXPECT_FALSE(is_autocast_enabled(kOnCPU));
  EXPECT_EQ(mm(w, w).dtype(), DType::kF32);
  EXPECT_THROWS(AutocastGuard(kOnCPU, true, DType::kF32), DTypeError, "[autocast]", "float32");
}

TEST(Autocast, AnOperatorThatThrowsInARegionLeavesItOn) {
  const Tensor x = matrix({1, 2, 3, 4});
  const AutocastGuard region(kOnCPU);
  EXPECT_THROW(mm(x, empty({3, 3})), ShapeError);
  EXPECT_EQ(mm(x, x).dtype(), DType::kBF16);
}

TEST(Autocast, StateTravelsToAnotherThreadByItsGuardAlone) {
  const Tensor x = matrix({1, 2, 3, 4});
  const AutocastGuard region(kOnCPU, true, DType::kF16, false);
  const AutocastState state = autocast_state();
  DType plain = DType::kBool, restored = DType::kBool;
  bool cached = true;
  std::thread([&] {
    plain = mm(x, x).dtype();
    const AutocastStateGuard guard(state);
    restored = mm(x, x).dtype();
    cached = autocast_state().cache_enabled;
  }).join();
  EXPECT_EQ(plain, DType::kF32);
  EXPECT_EQ(restored, DType::kF16);
  EXPECT_FALSE(cached);
}

TEST(Autocast, AnEmptyStateTurnsItOff) {
  const Tensor x = matrix({1, 2, 3, 4});
  const AutocastGuard region(kOnCPU);
  {
    const AutocastStateGuard off({});
    EXPECT_EQ(mm(x, x).dtype(), DType::kF32);
  }
  EXPECT_EQ(mm(x, x).dtype(), DType::kBF16);
}

TEST(Autocast, OperatorsOfPluginsJoinByTheirClass) {
  const Plugin plugin =
      load_library(std::filesystem::path(LOCKSTEP_TEST_PLUGINS) / "libelementwise.so");
  const Tensor x = matrix({1, 2, 3, 4}, DType::kBF16).set_requires_grad();
  Tensor y;
  {
    const AutocastGuard region(kOnCPU);
    y = call_op("test::scale_clamp", {x, 2});  // its class is f32, the only dtype that it accepts
  }
  EXPECT_EQ(y.dtype(), DType::kF32);
  EXPECT_THAT(elements(y), ElementsAre(2, 4, 6, 6));
  sum(y).backward();
  EXPECT_EQ(x.grad().dtype(), DType::kBF16);
  EXPECT_THAT(elements(x.grad()), ElementsAre(2, 2, 0, 0));
}

TEST(Autocast, CastsTheWholeBatchInsideVmap) {
  const Tensor w = weight();
  const Tensor rows = matrix({1, 2, 3, 4});
  const auto product = [&](const Tensor& row) { return linear(row, w, {}); };
  const AutocastGuard region(kOnCPU);
  Tensor batch;
  EXPECT_EQ(casts_in([&] { batch = vmap(product)(rows); }), 2);
  EXPECT_EQ(batch.dtype(), DType::kBF16);
  EXPECT_EQ(elements(batch), elements(linear(rows, w, {})));
}

TEST(Autocast, BackwardRunsOutsideOfTheRegion) {
  const Tensor x = sample::leaf({1, 2});
  bool enabled = true;
  sample::inside = [&] { enabled = is_autocast_enabled(kOnCPU); };
  const AutocastGuard region(kOnCPU);
  sum(sample::calling(x)).backward();
  sample::inside = nullptr;
  EXPECT_FALSE(enabled);
  EXPECT_TRUE(is_autocast_enabled(kOnCPU));
}

}  // namespace
}  // namespace lockstep
