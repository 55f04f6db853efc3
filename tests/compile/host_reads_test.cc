#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "compile/compile.h"
#include "compile/program.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Tensor six_numbers(double first) {
  return add(arange(6, TensorOptions(DType::kF32)).reshape({2, 3}), first);
}

using TensorBody = std::function<Tensor(const Tensor&)>;

/// Calls both with equal arguments: results and what becomes of the arguments must be equal.
void expect_equal_call(const CompiledTensorFunction& compiled, const TensorBody& body,
                       double first) {
  const Tensor mine = six_numbers(first), theirs = six_numbers(first);
  const Tensor got = compiled(mine), want = body(theirs);
  EXPECT_TRUE(equal(got, want)) << first;
  EXPECT_TRUE(equal(mine, theirs)) << first;
  EXPECT_EQ(got.is_same(mine), want.is_same(theirs));
}

/// Calls with several arguments, twice each; the first of them are recorded.
void expect_ways(const TensorBody& body, const std::vector<double>& firsts, int ways) {
  const CompiledTensorFunction compiled = compile(body);
  for (int round = 0; round < 2; ++round) {
    for (const double first : firsts) expect_equal_call(compiled, body, first);
  }
  EXPECT_EQ(compiled.counts().recorded, ways);
  EXPECT_EQ(compiled.counts().replayed, 2 * std::ssize(firsts) - ways);
  EXPECT_EQ(compiled.counts().eager, 0);
  EXPECT_THAT(compiled.programs(), SizeIs(ways));
}

TEST(HostReads, EachValueTakesTheGraphThatWasRecordedForIt) {
  int calls = 0;
  const CompiledTensorFunction compiled = compile([&](const Tensor& x) {
    ++calls;
    const Tensor y = x.mul(2).add(1);
    return y.gt(6).any().item<bool>() ? y.neg() : y.exp();
  });
  for (const double first : {0.0, -5.0, 1.0, -6.0, 2.0}) {
    const Tensor y = six_numbers(first).mul(2).add(1);
    EXPECT_TRUE(equal(compiled(six_numbers(first)), first >= 0 ? y.neg() : y.exp()));
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(compiled.counts().replayed, 3);
  EXPECT_THAT(compiled.reasons(),
              ElementsAre("recorded again: _local_scalar_dense gives False, not True"));
}

TEST(HostReads, NumbersAreComparedBitByBit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const CompiledTensorFunction compiled = compile([](const Tensor& x) {
    const auto value = x.item<double>();
    if (std::isnan(value)) return x.gt(0);
    return std::signbit(value) ? x.exp() : x.add(2);
  });
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(compiled(full({1}, 0.0)).item<double>(), 2);
    EXPECT_EQ(compiled(full({1}, -0.0)).item<double>(), 1);
    EXPECT_EQ(compiled(full({1}, nan)).dtype(), DType::kBool);
  }
  EXPECT_EQ(compiled.counts().recorded, 3);
  EXPECT_EQ(compiled.counts().replayed, 3);
}

TEST(HostReads, ReadsBehindReadsMakeATree) {
  const auto body = [](const Tensor& x) {
    Tensor y = x.mul(0.5);
    for (int i = 0; i < 4 && y.sum().item<float>() < 30; ++i) y = y.mul(2).add(0.25);
    return y.tanh().add(x);
  };
  expect_ways(body, {0, 1, 3, 40}, 4);
}

TEST(HostReads, OtherHostValuesSplitAsWell) {
  const Tensor pattern = six_numbers(2);
  expect_ways([&](const Tensor& x) { return equal(x, pattern) ? x.neg() : x.exp(); }, {1, 2, 3}, 2);
  expect_ways([](const Tensor& x) { return is_nonzero(x.sum()) ? x.neg() : x.exp(); }, {-2.5, 1},
              2);
}

TEST(HostReads, SizesThatDependOnElementsAreRead) {
  const auto body = [](const Tensor& x) {
    const Tensor kept = masked_select(x, x.gt(3));
    return kept.mul(2).add(static_cast<double>(kept.numel())).tanh();
  };
  expect_ways(body, {0, 1, 2, 1.5}, 3);
}

TEST(HostReads, ChangesBeforeAndBehindAReadAreMade) {
  const auto body = [](const Tensor& x) {
    x.add_(1);
    const Tensor row = x.select(0, 1);
    if (row.sum().item<float>() > 15) {
      row.mul_(2);
    } else {
      x.t().select(0, 2).zero_();
    }
    return x.sum().add(row.sum());
  };
  expect_ways(body, {0, 1, 2}, 3);
}

TEST(HostReads, ArgumentsAreReturnedAsThemselves) {
  expect_ways([](const Tensor& x) { return x.sum().item<float>() > 20 ? x : x.neg_(); }, {0, 9}, 2);
}

TEST(HostReads, WhatTheFunctionKeepsIsReadAndChanged) {
  const Tensor count = zeros({});
  const auto body = [](const Tensor& x, const Tensor& count) {
    count.add_(1);
    if (count.item<int>() == 3) count.zero_();
    return x.mul(count);
  };
  const CompiledTensorFunction compiled = compile([&](const Tensor& x) { return body(x, count); });
  const Tensor other = zeros({});
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(equal(compiled(six_numbers(1)), body(six_numbers(1), other))) << i;
    EXPECT_TRUE(equal(count, other)) << i;
  }
  EXPECT_EQ(compiled.counts().recorded, 3);
  EXPECT_EQ(compiled.counts().replayed, 6);
}

TEST(HostReads, GradientsAreThoseOfTheWay) {
  const Tensor weight = six_numbers(0.5).mul(0.1).set_requires_grad();
  const auto body = [&](const Tensor& x) {
    const Tensor y = x.mul(weight).tanh();  // saved before the read, and needed behind it
    if (y.sum().item<float>() > 1) return y.t().mm(x).sum().exp();
    return y.mul(y).sigmoid();
  };
  const CompiledTensorFunction compiled = compile(body);
  for (const double first : {0.5, -2.0, 0.5, -2.0}) {
    const Tensor x = six_numbers(first).mul(0.3).set_requires_grad();
    const Tensor y = x.clone().detach().set_requires_grad();
    const Tensor want = body(x), got = compiled(y);
    EXPECT_TRUE(equal(got, want));
    const std::vector<Tensor> wanted = grad({want.sum()}, {x, weight});
    const std::vector<Tensor> gradients = grad({got.sum()}, {y, weight});
    EXPECT_TRUE(equal(gradients[0], wanted[0])) << first;
    EXPECT_TRUE(equal(gradients[1], wanted[1])) << first;
  }
  EXPECT_EQ(compiled.counts().recorded, 2);
  EXPECT_EQ(compiled.counts().replayed, 2);
}

TEST(HostReads, AChangedSavedTensorIsNoticed) {
  const CompiledTensorFunction compiled = compile([](const Tensor& x) {
    const Tensor y = x.exp();
    return y.sum().item<float>() > 0 ? y.mul(x) : y;
  });
  for (int i = 0; i < 2; ++i) {
    const Tensor x = six_numbers(0).set_requires_grad();
    const Tensor y = compiled(x);
    {
      const NoGradGuard no_grad;
      x.add_(1);
    }
    expect_error<AutogradError>([&] { y.sum().backward(); }, "changed");
  }
  EXPECT_EQ(compiled.counts().replayed, 1);
}

TEST(HostReads, AnUnknownValueDrawsTheSameRandomNumbers) {
  const auto body = [](const Tensor& x) {
    const Tensor y = x.add(x.uniform());
    return y.sum().item<float>() > 20 ? dropout(y, 0.5, true) : y.neg();
  };
  const CompiledTensorFunction compiled = compile(body);
  for (const int seed : {1, 2, 3, 1, 2, 3}) {
    manual_seed(seed);
    const Tensor got = compiled(six_numbers(seed));
    const Tensor next = rand({2});
    manual_seed(seed);
    EXPECT_TRUE(equal(got, body(six_numbers(seed))));
    EXPECT_TRUE(equal(next, rand({2})));
  }
  EXPECT_EQ(compiled.counts().replayed, 3);
}

TEST(HostReads, ExceptionsBehindAReadLeaveWhatEagerCallsLeave) {
  const auto body = [](const Tensor& x) {
    x.add_(1);
    LS_CHECK(x.sum().item<float>() < 40, Error, "[body] too much");
    return x.neg();
  };
  const CompiledTensorFunction compiled = compile(body);
  for (int round = 0; round < 3; ++round) {
    expect_equal_call(compiled, body, 1);
    const Tensor mine = six_numbers(10), theirs = six_numbers(10);
    expect_error<Error>([&] { (void)compiled(mine); }, "too much");
    expect_error<Error>([&] { (void)body(theirs); }, "too much");
    EXPECT_TRUE(equal(mine, theirs));
  }
  EXPECT_EQ(compiled.counts().replayed, 2);
}

TEST(HostReads, AWayThatCannotBeRecordedRunsAsItIs) {
  const auto body = [](const Tensor& x) {
    if (x.sum().item<float>() < 40) return x.neg();
    Generator generator(3);
    return x.uniform(0, 1, &generator);
  };
  const CompiledTensorFunction compiled = compile(body);
  for (const double first : {1.0, 10.0, 1.0, 10.0, 1.0}) expect_equal_call(compiled, body, first);
  EXPECT_EQ(compiled.counts().replayed, 2);
  EXPECT_EQ(compiled.counts().eager, 2);
  EXPECT_THAT(compiled.reasons().back(), HasSubstr("a generator of its own"));
}

TEST(HostReads, ValuesThatDifferInEachCallEndInEagerCalls) {
  CompileOptions options;
  options.most_programs = 3;
  const auto body = [](const Tensor& x) { return x.mul(x.sum().item<double>()); };
  const CompiledTensorFunction compiled = compile(body, options);
  for (int i = 0; i < 8; ++i) expect_equal_call(compiled, body, i);
  EXPECT_EQ(compiled.counts().recorded, 3);
  EXPECT_EQ(compiled.counts().eager, 5);
  EXPECT_THAT(compiled.reasons(),
              ElementsAre("recorded again: _local_scalar_dense gives 21, not 15",
                          "recorded again: _local_scalar_dense gives 27, not 15 or 21",
                          "eager: 3 calls in a row read values that no program was recorded for"));
  EXPECT_THAT(compiled.programs(), IsEmpty());
}

TEST(HostReads, KnownValuesRunWhereNoMoreProgramsAreKept) {
  CompileOptions options;
  options.most_programs = 2;
  const auto body = [](const Tensor& x) { return x.mul(x.sum().item<double>()); };
  const CompiledTensorFunction compiled = compile(body, options);
  for (const int i : {0, 1, 0, 2, 1, 3, 0}) expect_equal_call(compiled, body, i);
  EXPECT_EQ(compiled.counts().recorded, 2);
  EXPECT_EQ(compiled.counts().replayed, 3);
  EXPECT_EQ(compiled.counts().eager, 2);
  EXPECT_THAT(compiled.reasons(),
              ElementsAre(HasSubstr("gives 21, not 15"), "eager: 2 programs are kept already"));
}

TEST(HostReads, OtherWorkBeforeAReadIsNoticed) {
  int calls = 0;
  const auto body = [&](const Tensor& x) {
    const Tensor y = ++calls % 2 == 0 ? x.exp() : x.neg();
    return y.sum().item<float>() > -20 ? y : y.add(1);
  };
  const CompiledTensorFunction compiled = compile(body);
  (void)compiled(six_numbers(1));
  const Tensor got = compiled(six_numbers(2));
  EXPECT_TRUE(equal(got, six_numbers(2).exp()));
  EXPECT_THAT(compiled.reasons().back(), HasSubstr("computes other things before it reads"));
}

TEST(HostReads, ThreadsCallAtOnce) {
  const auto body = [](const Tensor& x) {
    const Tensor y = x.mul(2).add(1);
    return y.sum().item<float>() > 60 ? y.neg() : y.exp();
  };
  const CompiledTensorFunction compiled = compile(body);
  std::vector<std::thread> threads;
  std::atomic<int> equal_calls = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        equal_calls += equal(compiled(six_numbers(i % 4)), body(six_numbers(i % 4))) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal_calls, 80);
}

}  // namespace
}  // namespace lockstep
