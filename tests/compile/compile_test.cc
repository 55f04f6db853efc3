#include "compile/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/hooks.h"
#include "compile/guard.h"
#include "compile/program.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/index/subscript.h"
#include "core/ops/loss/loss.h"
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

Tensor numbers(double first) {
  return add(arange(6, TensorOptions(DType::kF32)).reshape({2, 3}), first);
}

/// Records with one tensor and runs with another: results and argument must be as eager's.
void expect_as_eager(const std::function<Tensor(const Tensor&)>& body) {
  const CompiledTensorFunction compiled = compile(body);
  for (const double first : {1.0, -2.0, 10.0}) {
    const Tensor mine = numbers(first);
    const Tensor theirs = numbers(first);
    const Tensor got = compiled(mine);
    const Tensor want = body(theirs);
    EXPECT_TRUE(equal(got, want));
    EXPECT_TRUE(equal(mine, theirs));
    EXPECT_EQ(got.is_same(mine), want.is_same(theirs));
    EXPECT_THAT(got.strides(), ::testing::ElementsAreArray(want.strides()));
  }
  EXPECT_THAT(compiled.reasons(), IsEmpty());
  EXPECT_EQ(compiled.counts().replayed, 2);
}

TEST(Compile, RunsTheRecordedOperators) {
  expect_as_eager([](const Tensor& x) { return add(x.exp(), x.t().mm(x).sum()); });
}

TEST(Compile, DoesNotCallTheFunctionAgain) {
  int calls = 0;
  const CompiledTensorFunction compiled = compile([&](const Tensor& x) {
    ++calls;
    return x.exp();
  });
  for (int i = 0; i < 3; ++i) (void)compiled(numbers(i));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(compiled.counts().recorded, 1);
}

TEST(Compile, ChangesOfArgumentsAreMade) {
  expect_as_eager([](const Tensor& x) {
    x.add_(1).mul_(2);
    return x.sum();
  });
  expect_as_eager([](const Tensor& x) { return x.neg_(); });
}

TEST(Compile, ChangesThroughViewsReachTheirBase) {
  expect_as_eager([](const Tensor& x) {
    x.select(0, 1).mul_(3);
    const Tensor column = x.t().select(0, 2);
    column.zero_();
    return add(x, 1);
  });
  expect_as_eager([](const Tensor& x) {
    const Tensor y = x.clone();
    const Tensor row = y.select(0, 0);
    y.add_(5);    // row sees it
    row.mul_(2);  // and y sees that
    y.t()[1] = row.sum();
    return y.mm(x.t());
  });
}

TEST(Compile, ChangesToAnotherDtypeAreKept) {
  expect_as_eager([](const Tensor& x) {
    const Tensor y = x.clone();
    y.gt_(2);  // compares, and stores the truth as float32
    return y.add(x.to(DType::kF64).mul_(0.1).to(DType::kF32));
  });
}

TEST(Compile, ConstantsOfTheFunctionMayBeChanged) {
  const Tensor count = zeros({});
  const CompiledTensorFunction compiled = compile([&](const Tensor& x) {
    count.add_(1);
    return x.mul(count);
  });
  for (int i = 1; i <= 4; ++i) {
    EXPECT_TRUE(equal(compiled(numbers(1)), numbers(1).mul(i)));
    EXPECT_EQ(count.item<int>(), i);
  }
  EXPECT_EQ(compiled.counts().replayed, 3);
  EXPECT_THAT(compiled.programs(), SizeIs(1));
  EXPECT_THAT(compiled.programs()[0]->captured(), SizeIs(1));
}

TEST(Compile, CapturedTensorsAreReadAtEachCall) {
  const Tensor weight = ones({3});
  const CompiledTensorFunction compiled = compile([&](const Tensor& x) { return x.mul(weight); });
  (void)compiled(numbers(1));
  weight.fill_(7);
  EXPECT_TRUE(equal(compiled(numbers(2)), numbers(2).mul(7)));
}

TEST(Compile, DrawsTheSameRandomNumbers) {
  const auto body = [](const Tensor& x) { return dropout(x, 0.5, true).add(x.uniform()); };
  const CompiledTensorFunction compiled = compile(body);
  for (int i = 0; i < 3; ++i) {
    manual_seed(i);
    const Tensor got = compiled(numbers(1));
    const Tensor next = rand({2});
    manual_seed(i);
    EXPECT_TRUE(equal(got, body(numbers(1))));
    EXPECT_TRUE(equal(next, rand({2})));
  }
  EXPECT_EQ(compiled.counts().replayed, 2);
}

TEST(Compile, GradientsAreThoseOfTheFunction) {
  const Tensor weight = tensor({{1.0, -2.0, 0.5}, {3.0, 0.25, -1.0}});
  weight.set_requires_grad();
  const auto body = [&](const Tensor& x) { return x.mul(weight).tanh().t().mm(x).sum().exp(); };
  const CompiledTensorFunction compiled = compile(body);
  for (const double first : {0.1, 0.2, -0.3}) {
    const Tensor x = numbers(first).mul(0.1);
    const Tensor y = x.clone();
    x.set_requires_grad();
    y.set_requires_grad();
    const std::vector<Tensor> want = grad({body(x)}, {x, weight});
    const std::vector<Tensor> got = grad({compiled(y)}, {y, weight});
    EXPECT_TRUE(equal(got[0], want[0]));
    EXPECT_TRUE(equal(got[1], want[1]));
  }
  EXPECT_EQ(compiled.counts().replayed, 2);
  EXPECT_THAT(compiled.reasons(), IsEmpty());
}

TEST(Compile, BackwardAddsToTheGradientsOfLeaves) {
  const Tensor weight = ones({3});
  weight.set_requires_grad();
  const CompiledTensorFunction compiled =
      compile([&](const Tensor& x) { return x.mul(weight).sum(); });
  for (int i = 0; i < 3; ++i) compiled(ones({2, 3})).backward();
  EXPECT_TRUE(equal(weight.grad(), ones({3}).mul(6)));
}

TEST(Compile, HooksOnGradientsOfWhatItReadsAreCalledOnce) {
  const Tensor weight = ones({3});
  weight.set_requires_grad();
  HookHandle hook = weight.register_hook([](const Tensor& grad) { return grad.mul(2); });
  const auto body = [&](const Tensor& x) { return x.mul(weight).sum(); };
  const CompiledTensorFunction hooked = compile(body);
  for (int i = 1; i <= 2; ++i) {
    hooked(ones({2, 3})).backward();
    EXPECT_TRUE(equal(weight.grad(), ones({3}).mul(4 * i)));
  }
  EXPECT_THAT(hooked.reasons(), ElementsAre(HasSubstr("hooks on its gradient")));
  hook.remove();
  weight.set_grad({});
  const CompiledTensorFunction plain = compile(body);
  plain(ones({2, 3})).backward();
  hook = weight.register_hook([](const Tensor& grad) { return grad.mul(2); });  // after the record
  plain(ones({2, 3})).backward();
  EXPECT_TRUE(equal(weight.grad(), ones({3}).mul(2 + 4)));
  EXPECT_EQ(plain.counts().replayed, 1);
}

TEST(Compile, ASecondDerivativeIsRefused) {
  const CompiledTensorFunction compiled = compile([](const Tensor& x) { return x.exp().sum(); });
  const auto second = [&] {
    const Tensor x = numbers(0.5);
    x.set_requires_grad();
    const Tensor first = grad({compiled(x)}, {x}, {}, {.create_graph = true})[0];
    return grad({first.sum()}, {x})[0];
  };
  (void)compiled(numbers(1));
  EXPECT_TRUE(second().defined());  // recorded: the function's own
  expect_error<AutogradError>([&] { (void)second(); }, "differentia");
}

TEST(Compile, OtherTypesAreRecordedAgainWithTheReason) {
  const CompiledTensorFunction compiled = compile([](const Tensor& x) { return x.sum(); });
  (void)compiled(ones({2, 3}));
  (void)compiled(ones({4, 3}));
  (void)compiled(ones({4, 3}, DType::kF64));
  (void)compiled(ones({2, 3}));
  {
    const NoGradGuard no_grad;
    (void)compiled(ones({2, 3}));
  }
  EXPECT_THAT(compiled.reasons(),
              ElementsAre("recorded again: input 0 is float32[4, 3], not float32[2, 3]",
                          "recorded again: input 0 is float64[4, 3], not float32[4, 3]",
                          HasSubstr("input 0 is float32[2, 3], not float64[4, 3]")));
  EXPECT_EQ(compiled.counts().recorded, 4);
  EXPECT_EQ(compiled.counts().replayed, 1);
}

TEST(Compile, MoreKindsOfCallsThanItKeepsRunEagerly) {
  CompileOptions options;
  options.most_programs = 2;
  const CompiledTensorFunction compiled = compile([](const Tensor& x) { return x.sum(); }, options);
  for (int size = 1; size <= 4; ++size) EXPECT_EQ(compiled(ones({size})).item<int>(), size);
  EXPECT_EQ(compiled.counts().recorded, 2);
  EXPECT_EQ(compiled.counts().eager, 2);
  EXPECT_THAT(compiled.reasons().back(), HasSubstr("eager: 2 programs are kept already"));
}

TEST(Compile, WhatCannotBeRecordedRunsAsItIs) {
  const auto expect_eager = [](const std::function<Tensor(const Tensor&)>& body,
                               const std::string& reason) {
    const CompiledTensorFunction compiled = compile(body);
    for (const double first : {1.0, 2.0}) {
      EXPECT_TRUE(equal(compiled(numbers(first)), body(numbers(first))));
    }
    EXPECT_EQ(compiled.counts().eager, 2);
    EXPECT_THAT(compiled.reasons(), ElementsAre(HasSubstr(reason)));
  };
  expect_eager(
      [](const Tensor& x) {
        Generator generator(3);
        return x.uniform(0, 1, &generator);
      },
      "a generator of its own");
  expect_eager(
      [](const Tensor& x) {
        const Tensor y = x.clone();
        y.transpose_(0, 1);
        return y;
      },
      "changes a tensor's shape");
  expect_eager(
      [](const Tensor& x) {
        x.add_(1);
        return x.t();
      },
      "a view of an input that it changes");
}

TEST(Compile, ExceptionsOfTheFunctionReachTheCaller) {
  const CompiledTensorFunction compiled = compile([](const Tensor& x) {
    return x.mm(ones({5, 5}));
  });
  for (int i = 0; i < 2; ++i) {
    expect_error<ShapeError>([&] { (void)compiled(numbers(1)); }, "mm");
  }
  EXPECT_THAT(compiled.programs(), IsEmpty());
}

TEST(Compile, CastsOfWeightsFollowTheWeights) {
  for (const bool keeps : {false, true}) {
    for (const bool cast_before : {false, true}) {
      const Tensor w = randn({3, 3}).set_requires_grad();
      keep_cast(w, keeps);
      const CompiledTensorFunction compiled = compile([&](const Tensor& x) { return x.mm(w); });
      const Tensor x = numbers(1);
      for (int step = 0; step < 3; ++step) {
        const AutocastGuard autocast(DeviceType::kCPU);
        if (cast_before) w.mm(w);
        const Tensor got = compiled(x), want = x.mm(w);
        EXPECT_TRUE(equal(got, want)) << step << keeps << cast_before;
        got.sum().backward();
        const Tensor gradient = w.grad();
        w.set_grad({});
        want.sum().backward();
        EXPECT_TRUE(equal(gradient, w.grad()));
        w.set_grad({});
        const NoGradGuard no_grad;
        w.add_(1);
      }
      EXPECT_EQ(compiled.counts().replayed, 2);
    }
  }
}

TEST(Compile, GradientsOfAnyStridesReachTheRecordOfBackward) {
  const auto body = [](const Tensor& x) { return x.mul(x).tanh().mul(2).sigmoid(); };
  const Tensor gradients[] = {ones({1}).expand({40, 30}), randn({30, 40}).t(),
                              randn({80, 30}).slice(0, 0, 80, 2), randn({40, 30})};
  const CompiledTensorFunction compiled = compile(body);
  for (int round = 0; round < 2; ++round) {
    for (const Tensor& gradient : gradients) {
      const Tensor x = randn({40, 30});
      const Tensor leaf = x.clone().set_requires_grad(), same = x.clone().set_requires_grad();
      EXPECT_TRUE(equal(grad({compiled(leaf)}, {leaf}, {gradient})[0],
                        grad({body(same)}, {same}, {gradient})[0]))
          << to_string(compiler::ValueType::of(gradient));
    }
  }
  EXPECT_EQ(compiled.counts().replayed, 7);
}

TEST(Compile, GradientsOfSeveralLayoutsAreAddedInTheLayoutOfEager) {
  const auto body = [](TensorList inputs) {
    const Tensor y = inputs[0].t().add(inputs[1]).tanh();
    return std::vector<Tensor>{y.clone(), softmax(y, 0)};
  };
  const CompiledFunction compiled = compile(body);
  for (int round = 0; round < 4; ++round) {
    // The sum of all elements of a gradient, which goes along memory, is that of a number.
    const std::vector<Tensor> inputs = {randn({16, 16}).set_requires_grad(),
                                        randn({}).set_requires_grad()};
    const auto gradients = [&](const std::vector<Tensor>& results) {
      return grad(results, inputs, {ones_like(results[0]), ones_like(results[1])});
    };
    const std::vector<Tensor> got = gradients(compiled(inputs)), want = gradients(body(inputs));
    EXPECT_TRUE(equal(got[0], want[0]));
    EXPECT_EQ(got[1].item<float>(), want[1].item<float>());
  }
}

TEST(Compile, AutocastIsPartOfTheRecord) {
  const CompiledTensorFunction compiled = compile([](const Tensor& x) { return x.mm(x.t()); });
  EXPECT_EQ(compiled(numbers(1)).dtype(), DType::kF32);
  for (int i = 0; i < 2; ++i) {
    const AutocastGuard autocast(DeviceType::kCPU);
    EXPECT_EQ(compiled(numbers(1)).dtype(), DType::kBF16);
  }
  EXPECT_EQ(compiled(numbers(1)).dtype(), DType::kF32);
  EXPECT_EQ(compiled.counts().recorded, 2);
  EXPECT_EQ(compiled.counts().replayed, 2);
}

TEST(Compile, SharedMemoryIsPartOfTheRecord) {
  const auto body = [](TensorList inputs) {
    inputs[0].mul_(2);
    return std::vector<Tensor>{inputs[0].add(inputs[1])};
  };
  const CompiledFunction compiled = compile(body);
  EXPECT_TRUE(equal(compiled({numbers(1), numbers(2)})[0], numbers(1).mul(2).add(numbers(2))));
  const Tensor both = numbers(1);
  EXPECT_TRUE(equal(compiled({both, both})[0], numbers(1).mul(4)));
  EXPECT_TRUE(equal(both, numbers(1).mul(2)));
  EXPECT_TRUE(equal(compiled({numbers(1), numbers(2)})[0], numbers(1).mul(2).add(numbers(2))));
  EXPECT_THAT(compiled.reasons(), ElementsAre(HasSubstr("inputs share memory in another way"),
                                              HasSubstr("shares memory with another one")));
}

TEST(Compile, WhichInputsShareMemoryIsPartOfTheRecord) {
  const auto body = [](TensorList inputs) {
    return std::vector<Tensor>{inputs[0].mul(100).add(inputs[1].mul(10)).add(inputs[2])};
  };
  const CompiledFunction compiled = compile(body);
  const Tensor parts = arange(24, TensorOptions(DType::kF32)).view({4, 2, 3});
  const Tensor a = parts.select(0, 0);
  const Tensor b = parts.select(0, 1);
  const Tensor c = parts.select(0, 2);
  const Tensor apart = numbers(7);
  // One tensor twice reads as one; parts of one memory do not, though they share it as well.
  for (const std::vector<Tensor>& inputs : std::vector<std::vector<Tensor>>{{a, a, b},
                                                                            {a, b, c},
                                                                            {a, b, b},
                                                                            {b, b, a},
                                                                            {apart, a, a},
                                                                            {a, a, apart},
                                                                            {a, b, apart}}) {
    EXPECT_TRUE(equal(compiled(inputs)[0], body(inputs)[0]));
  }
  EXPECT_EQ(compiled.counts().replayed, 1);  // {b, b, a}, as {a, a, b}
}

TEST(Compile, AChangeOfWhatIsKeptAsWellIsMadeEagerly) {
  const Tensor weight = numbers(3);
  const auto body = [&](const Tensor& x) {
    x.mul_(2);
    return x.add(weight);
  };
  const CompiledTensorFunction compiled = compile(body);
  EXPECT_TRUE(equal(compiled(numbers(1)), numbers(1).mul(2).add(numbers(3))));
  EXPECT_TRUE(equal(compiled(weight), numbers(3).mul(4)));
  EXPECT_TRUE(equal(weight, numbers(3).mul(2)));
  EXPECT_TRUE(equal(compiled(numbers(1)), numbers(1).mul(2).add(numbers(3).mul(2))));
  EXPECT_EQ(compiled.counts().replayed, 1);
  EXPECT_THAT(compiled.reasons(), ElementsAre(HasSubstr("shares memory with a kept tensor")));
}

TEST(Compile, InferenceTensorsArePartOfTheRecord) {
  const CompiledTensorFunction compiled = compile([](const Tensor& x) { return x.exp(); });
  (void)compiled(numbers(1));
  Tensor inferred;
  {
    const InferenceModeGuard inference;
    inferred = numbers(1);
  }
  (void)compiled(inferred);
  EXPECT_THAT(compiled.reasons(), ElementsAre(HasSubstr("of inference mode")));
}

TEST(Compile, TheDefaultDeviceIsPartOfTheRecord) {
  const CompiledTensorFunction compiled = compile([](const Tensor& x) { return zeros(x.sizes()); });
  EXPECT_EQ(compiled(numbers(1)).device(), kCPU);
  const DefaultDeviceGuard guard(Device{DeviceType::kMeta, 0});
  EXPECT_EQ(compiled(ones({2, 3}, {DType::kF32, kCPU})).device().type, DeviceType::kMeta);
}

TEST(Compile, SeveralInputsAndOutputs) {
  const CompiledFunction compiled = compile([](TensorList inputs) {
    return std::vector<Tensor>{inputs[0].add(inputs[1]), inputs[1], Tensor(), inputs[0].gt(0)};
  });
  for (int i = 0; i < 2; ++i) {
    const Tensor a = numbers(i);
    const Tensor b = numbers(2);
    const std::vector<Tensor> results = compiled({a, b});
    ASSERT_THAT(results, SizeIs(4));
    EXPECT_TRUE(equal(results[0], a.add(b)));
    EXPECT_TRUE(results[1].is_same(b));
    EXPECT_FALSE(results[2].defined());
    EXPECT_TRUE(equal(results[3], a.gt(0)));
  }
  EXPECT_EQ(compiled.counts().replayed, 1);
}

TEST(Compile, PassesOfTheCallerRun) {
  CompileOptions options;
  int runs = 0;
  options.passes.push_back({"count", [&](compiler::Graph graph) {
                              ++runs;
                              return graph;
                            }});
  const CompiledTensorFunction compiled = compile([](const Tensor& x) { return x.exp(); }, options);
  (void)compiled(numbers(1));
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace lockstep
