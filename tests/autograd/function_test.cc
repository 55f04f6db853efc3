// Function: operations with a user-defined derivative.

#include "autograd/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/transforms.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "core/tensor/allocator.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::ElementsAre;

/// scale x^3.
struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale) {
    EXPECT_FALSE(is_grad_enabled());
    ctx.save_for_backward({x});
    ctx.set_data(scale);
    return x * x * x * scale;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    const Tensor& x = ctx.saved(0);
    return {grad * x * x * (3 * ctx.data<double>())};
  }
};

TEST(Function, TheGradientIsWhatBackwardSays) {
  const Tensor x = leaf({1, 2});
  const Tensor y = Cube::apply(x, 2);
  EXPECT_THAT(elements(y), ElementsAre(2, 16));
  y.backward(sample::vector({1, 10}));
  EXPECT_THAT(elements(x.grad()), ElementsAre(6, 240));
}

TEST(Function, TheNodeHasTheClassesName) {
  const Tensor y = Cube::apply(leaf({1}), 2);
  EXPECT_EQ(y.grad_fn()->name(), "CubeBackward");
  ASSERT_EQ(y.grad_fn()->next_edges().size(), 1u);
  EXPECT_EQ(y.grad_fn()->next_edges()[0].node->name(), "AccumulateGrad");
}

/// A Function with an argument in its name.
template <class T>
struct Scaled : Function<Scaled<T>> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x * 2; }
  static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad * 2}; }
};

TEST(Function, TheNameOfATemplateHasItsArgument) {
  EXPECT_EQ(Scaled<int>::apply(leaf({1})).grad_fn()->name(), "Scaled<int>Backward");
  const std::string nested = Scaled<DataError>::apply(leaf({1})).grad_fn()->name();
  EXPECT_EQ(nested, "Scaled<lockstep::DataError>Backward");
}

TEST(Function, TheNodeTellsWhatItSaves) {
  const std::vector<SavedTensorInfo> saved =
      Cube::apply(leaf({1, 2}), 2).grad_fn()->saved_tensors();
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved[0].name, "saved0");
  EXPECT_EQ(saved[0].bytes, 2 * sizeof(double));
  EXPECT_THAT(elements(saved[0].tensor), ElementsAre(1, 2));
}

TEST(Function, IsDifferentiatedAsOftenAsItsBackwardIsRecorded) {
  const auto cube = [](TensorList inputs) { return Cube::apply(inputs[0], 2); };
  EXPECT_TRUE(gradcheck(cube, {leaf({1, -2})}));
  EXPECT_TRUE(gradgradcheck(cube, {leaf({1, -2})}));
  const Tensor x = leaf({2});
  Tensor y = Cube::apply(x, 1);
  std::vector<double> derivatives;
  for (int i = 0; i < 3; ++i) {
    y = grad({y}, {x}, {}, {.create_graph = true})[0];
    derivatives.push_back(y.item<double>());
  }
  EXPECT_THAT(derivatives, ElementsAre(12, 12, 6));
}

TEST(Function, WithoutRecordingNothingIsKept) {
  const Tensor x = leaf({1, 2});
  {
    const NoGradGuard guard;
    EXPECT_FALSE(Cube::apply(x, 2).requires_grad());
  }
  EXPECT_FALSE(Cube::apply(sample::vector({1}), 2).requires_grad());
}

/// 7 * last + the sum of i * list[i] - optional, for number = 7.
struct Mixed : Function<Mixed> {
  static Tensor forward(FunctionContext& ctx, const std::vector<Tensor>& list, const char* word,
                        const std::optional<Tensor>& optional, int number, Tensor last) {
    EXPECT_STREQ(word, "word");
    ctx.set_data(std::pair{list.size(), optional.has_value()});
    Tensor sum = last * number;
    for (size_t i = 0; i < list.size(); ++i) sum = sum + list[i] * static_cast<double>(i);
    return optional ? sum - *optional : sum;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    const auto [count, optional] = ctx.data<std::pair<size_t, bool>>();
    Gradients gradients;
    for (size_t i = 0; i < count; ++i) gradients.push_back(grad * static_cast<double>(i));
    gradients.push_back(optional ? grad.neg() : Tensor());
    gradients.push_back(grad * 7);
    return gradients;
  }
};

TEST(Function, TakesListsOptionalTensorsAndPlainValues) {
  const std::vector<Tensor> list{leaf({1}), sample::vector({1}), leaf({1})};
  const Tensor optional = leaf({1}), last = leaf({1});
  Mixed::apply(list, "word", optional, 7, last).backward();
  EXPECT_THAT(elements(list[0].grad()), ElementsAre(0));
  EXPECT_FALSE(list[1].grad().defined());
  EXPECT_THAT(elements(list[2].grad()), ElementsAre(2));
  EXPECT_THAT(elements(optional.grad()), ElementsAre(-1));
  EXPECT_THAT(elements(last.grad()), ElementsAre(7));

  last.set_grad({});
  Mixed::apply(std::vector<Tensor>{}, "word", std::nullopt, 7, last).backward();
  EXPECT_THAT(elements(last.grad()), ElementsAre(7));
}

/// 3 x, whose backward returns its gradient in f32.
struct NarrowSlope : Function<NarrowSlope> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x * 3; }
  static Gradients backward(FunctionContext&, const Tensor& grad) {
    return {grad.to(DType::kF32) * 3};
  }
};

TEST(Function, AGradientOfAnotherFloatingDtypeIsCastToTheArguments) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  const Tensor of_y = grad({NarrowSlope::apply(y).sum()}, {y})[0];
  EXPECT_EQ(of_y.dtype(), DType::kF64);
  EXPECT_THAT(elements(of_y), ElementsAre(3, 3));
  NarrowSlope::apply(x).sum().backward();
  EXPECT_EQ(x.grad().dtype(), DType::kF64);
}

/// x^2, with a backward that is a Function itself.
struct SquareSlope : Function<SquareSlope> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const Tensor& grad) {
    ctx.save_for_backward({x, grad});
    return x * grad * 2;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    return {grad * ctx.saved(1) * 2, grad * ctx.saved(0) * 2};
  }
};
struct Square : Function<Square> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    return {SquareSlope::apply(ctx.saved(0), grad)};
  }
};

TEST(Function, BackwardMayCallFunctions) {
  const auto square = [](TensorList inputs) { return Square::apply(inputs[0]); };
  EXPECT_TRUE(gradgradcheck(square, {leaf({1, -2})}));
  // A tensor saved by a backward with create_graph survives for the next backward.
  const Tensor x = leaf({3});
  const Tensor y = Square::apply(x);
  const Tensor slope = grad({y}, {x}, {}, {.create_graph = true})[0];
  y.backward({}, /*retain_graph=*/true);
  slope.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(6 + 2));
}

/// (2 a, 3 b), with a backward that records the gradients that it received.
struct Pair : Function<Pair> {
  static std::tuple<Tensor, Tensor> forward(FunctionContext& ctx, const Tensor& a, const Tensor& b,
                                            bool materialize = true) {
    ctx.set_materialize_grads(materialize);
    return {a * 2, b * 3};
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad_a, const Tensor& grad_b) {
    seen = {grad_a, grad_b};
    needs = {ctx.needs_input_grad(0), ctx.needs_input_grad(1)};
    return ctx.gradients([&] { return grad_a.defined() ? grad_a * 2 : Tensor(); },
                         [&] { return grad_b.defined() ? grad_b * 3 : Tensor(); });
  }
  static inline thread_local std::vector<Tensor> seen;
  static inline thread_local std::pair<bool, bool> needs;
};

TEST(Function, GradientsThatDidNotArriveAreZeros) {
  const Tensor a = leaf({1, 1}), b = leaf({1});
  std::get<0>(Pair::apply(a, b, true)).sum().backward();
  EXPECT_THAT(elements(Pair::seen[1]), ElementsAre(0));
  EXPECT_THAT(elements(a.grad()), ElementsAre(2, 2));
  EXPECT_THAT(elements(b.grad()), ElementsAre(0));
  Pair::seen.clear();
}

TEST(Function, WithoutMaterializingTheyAreUndefined) {
  const Tensor a = leaf({1, 1}), b = leaf({1});
  std::get<1>(Pair::apply(a, b, false)).sum().backward();
  EXPECT_FALSE(Pair::seen[0].defined());
  EXPECT_FALSE(a.grad().defined());
  EXPECT_THAT(elements(b.grad()), ElementsAre(3));
  Pair::seen.clear();
}

TEST(Function, KnowsWhichGradientsAreWanted) {
  const Tensor a = leaf({1}), b = leaf({1});
  const auto [x, y] = Pair::apply(a, b, true);
  grad({x + y}, {b});
  EXPECT_EQ(Pair::needs, std::pair(false, true));
  std::get<0>(Pair::apply(a, sample::vector({1}), true)).backward();
  EXPECT_EQ(Pair::needs, std::pair(true, false));
  Pair::seen.clear();
}

/// The sum of a list, with a backward that tells which gradients are wanted.
struct SumOfList : Function<SumOfList> {
  static Tensor forward(FunctionContext&, const std::vector<Tensor>& list) {
    Tensor sum = list[0] * 1;
    for (size_t i = 1; i < list.size(); ++i) sum = sum + list[i];
    return sum;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    wanted.clear();
    for (size_t i = 0; i < kCount + 2; ++i) wanted.push_back(ctx.needs_input_grad(i));
    return Gradients(kCount, grad);
  }
  static inline thread_local std::vector<bool> wanted;
  static constexpr size_t kCount = 70;
};

TEST(Function, OfManyArgumentsTheFirst64KnowWhetherTheyAreWanted) {
  std::vector<Tensor> list(SumOfList::kCount, sample::vector({1}));
  for (const size_t i : {3, 63, 64, 66, 69}) list[i] = leaf({1});
  grad({SumOfList::apply(list)}, {list[3], list[66]});
  std::vector<size_t> wanted;
  for (size_t i = 0; i < SumOfList::wanted.size(); ++i) {
    if (SumOfList::wanted[i]) wanted.push_back(i);
  }
  // Of the others it is known only that they require a gradient.
  EXPECT_THAT(wanted, ElementsAre(3, 64, 66, 69));
  EXPECT_THAT(elements(grad({SumOfList::apply(list)}, {list[66]})[0]), ElementsAre(1));
}

struct Halves : Function<Halves> {
  static std::vector<Tensor> forward(FunctionContext&, const Tensor& x) {
    return {x * 0.5, Tensor(), x * 0.25};
  }
  static Gradients backward(FunctionContext&, TensorList grads) {
    EXPECT_EQ(grads.size(), 3u);
    EXPECT_FALSE(grads[1].defined());
    return {grads[0] * 0.5 + grads[2] * 0.25};
  }
};

TEST(Function, ReturnsLists) {
  const Tensor x = leaf({1});
  const std::vector<Tensor> halves = Halves::apply(x);
  EXPECT_EQ(halves[0].grad_fn(), halves[2].grad_fn());
  (halves[0] + halves[2]).backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(0.75));
}

/// The largest element, a copy of it marked as non-differentiable, and its index.
struct Largest : Function<Largest> {
  static std::tuple<Tensor, Tensor, Tensor> forward(FunctionContext& ctx, const Tensor& x) {
    const Tensor place = x.argmax();
    const Tensor value = x.select(0, place.item<int64_t>()).clone();
    const Tensor copy = value.clone();
    ctx.mark_non_differentiable({copy});
    ctx.save_for_backward({x, place});
    return {value, copy, place};
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad, const Tensor& none,
                            const Tensor& place_grad) {
    EXPECT_TRUE(none.defined() && place_grad.defined());
    const Tensor gradient = zeros_like(ctx.saved(0));
    gradient.select(0, ctx.saved(1).item<int64_t>()).copy_(grad);
    return {gradient};
  }
};

TEST(Function, ResultsMayCarryNoGradient) {
  const Tensor x = leaf({1, 5, 2});
  const auto [value, copy, place] = Largest::apply(x);
  EXPECT_TRUE(value.requires_grad());
  EXPECT_FALSE(copy.requires_grad());
  EXPECT_FALSE(place.requires_grad());
  value.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(0, 1, 0));
}

/// exp(x), whose derivative reads the result.
struct Exp : Function<Exp> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    const Tensor y = x.exp();
    ctx.save_for_backward({y});
    return y;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    return {grad * ctx.saved(0)};
  }
};

TEST(Function, ASavedResultHasItsHistoryInTheSecondDerivative) {
  const auto exp_of = [](TensorList inputs) { return Exp::apply(inputs[0]); };
  EXPECT_TRUE(gradgradcheck(exp_of, {leaf({0.5, -1})}));
}

TEST(Function, AChangeOfWhatWasSavedIsNoticed) {
  const Tensor x = leaf({1}) * 1;
  const Tensor y = Cube::apply(x, 1);
  x.add_(sample::vector({1}));
  EXPECT_THROWS(y.backward(), AutogradError, "[Cube]", "changed in place", "float64[1]");
}

TEST(Function, ASecondBackwardNeedsTheGraphToBeKept) {
  const Tensor x = leaf({1});
  const Tensor y = Cube::apply(x, 1);
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(6));
  EXPECT_THROWS(y.backward(), AutogradError, "[CubeBackward]", "retain_graph");
}

struct Once : Function<Once> {
  static constexpr bool once_differentiable = true;
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    EXPECT_FALSE(is_grad_enabled());
    return {grad * ctx.saved(0) * 2};
  }
};

TEST(Function, OnceDifferentiableRefusesASecondDerivative) {
  const Tensor x = leaf({3});
  Once::apply(x).backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(6));
  const Tensor first = grad({Once::apply(x)}, {x}, {}, {.create_graph = true})[0];
  EXPECT_THAT(elements(first), ElementsAre(6));
  EXPECT_THROWS(grad({first}, {x}), AutogradError, "[Once]", "once_differentiable");
}

// Batches --------------------------------------------------------------------------------------

/// scale x^3 + y, for one sample or, by its vmap method, for a batch.
struct BatchedCube : Function<BatchedCube> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale,
                        const std::optional<Tensor>& y) {
    ctx.save_for_backward({x});
    ctx.set_data(scale);
    const Tensor cube = x * x * x * scale;
    return y ? cube + *y : cube;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    const Tensor& x = ctx.saved(0);
    return ctx.gradients([&] { return grad * x * x * (3 * ctx.data<double>()); },
                         [&] { return grad; });
  }
  static Tensor vmap(const FunctionBatch& batch, const Tensor& x, double scale,
                     const std::optional<Tensor>& y) {
    EXPECT_EQ(batch.size, 2);
    seen = {batch.is_batched(0), batch.is_batched(1)};
    if (!batch.is_batched(0)) return apply(x.expand(y->sizes()), scale, y);
    if (y && !batch.is_batched(1)) return apply(x, scale, y->expand(x.sizes()));
    return apply(x, scale, y);
  }
  static inline std::pair<bool, bool> seen;
};

TEST(Function, UnderVmapItsVmapMethodRuns) {
  const Tensor x = sample::matrix(2, 3, false), y = sample::vector({1, 2, 3});
  const auto cube = [](const Tensor& a, const Tensor& b) { return BatchedCube::apply(a, 2, b); };
  const Tensor z = vmap(cube, {.in_dims = {0, std::nullopt}})(x, y);
  EXPECT_EQ(BatchedCube::seen, std::pair(true, false));
  EXPECT_EQ(elements(z), elements(x * x * x * 2 + y));
  // The batch dimension need not be the first.
  const Tensor w = vmap(cube, {.in_dims = {1, std::nullopt}, .out_dims = {1}})(x.t(), y);
  EXPECT_EQ(elements(w), elements((x * x * x * 2 + y).t()));
}

TEST(Function, UnderVmapItIsRecordedOnTheWholeBatch) {
  const Tensor x = sample::matrix(2, 3);
  const auto cube = [](const Tensor& a) { return BatchedCube::apply(a, 2, std::nullopt); };
  vmap(cube)(x).sum().backward();
  const Tensor plain = sample::matrix(2, 3);
  (plain * plain * plain * 2).sum().backward();
  EXPECT_THAT(elements(x.grad()), testing::Pointwise(testing::DoubleEq(), elements(plain.grad())));

  const auto sum = [](const Tensor& a) { return BatchedCube::apply(a, 2, std::nullopt).sum(); };
  EXPECT_THAT(elements(vmap(grad(sum))(x.detach())),
              testing::Pointwise(testing::DoubleEq(), elements(x.grad())));
}

TEST(Function, WithoutAVmapMethodABatchIsRefused) {
  const auto cube = [](const Tensor& a) { return Cube::apply(a, 2); };
  EXPECT_THROWS(vmap(cube)(sample::matrix(2, 3)), AutogradError, "[Cube] has no vmap method");
  // Arguments that are not batched are accepted without a vmap method.
  const Tensor x = sample::vector({1, 2});
  const auto constant = [&](const Tensor& a) { return a * Cube::apply(x, 2); };
  EXPECT_THAT(elements(vmap(constant)(sample::vector({1, 10}))), ElementsAre(2, 16, 20, 160));
}

TEST(Function, AVmapMethodMustReturnTheBatch) {
  struct Lost : Function<Lost> {
    static Tensor forward(FunctionContext&, const Tensor& x) { return x * 1; }
    static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad}; }
    static Tensor vmap(const FunctionBatch&, const Tensor& x) { return x.select(0, 0); }
  };
  const auto lost = [](const Tensor& a) { return Lost::apply(a); };
  // A vector of three is no batch of two, nor is one of two a batch of four.
  EXPECT_THROWS(vmap(lost)(sample::matrix(2, 3)), AutogradError, "[Lost]", "batch of 2");
  EXPECT_THROWS(vmap(lost)(sample::matrix(4, 2)), AutogradError, "[Lost]", "batch of 4");
}

// Faults ---------------------------------------------------------------------------------------

/// Counts its live instances; attached to a node to see when the node is destroyed.
struct Witness {
  Witness() { ++alive; }
  Witness(const Witness&) { ++alive; }
  ~Witness() { --alive; }
  static inline thread_local int alive = 0;
};

enum class Fault { kNone, kForward, kBackward, kTooFew, kTooMany, kShape, kDType };

struct Faulty : Function<Faulty> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const Tensor& y, Fault fault) {
    ctx.set_data(std::pair(fault, Witness()));
    const Tensor result = x + y;
    ctx.save_for_backward({x, result});
    if (fault == Fault::kForward) throw DataError("[sample] forward failed.");
    return result;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    switch (ctx.data<std::pair<Fault, Witness>>().first) {
      case Fault::kBackward:
        throw DataError("[sample] backward failed.");
      case Fault::kTooFew:
        return {grad};
      case Fault::kTooMany:
        return {grad, grad, grad};
      case Fault::kShape:
        return {zeros({3}, DType::kF64), grad};
      case Fault::kDType:
        return {zeros({2}, DType::kI64), grad};
      default:
        return {grad, grad};
    }
  }
};

class FunctionFault : public ::testing::Test {
 protected:
  void run(Fault fault) {
    const Tensor x = leaf({1, 1}), y = leaf({2, 2});
    const Tensor middle = x * 2;  // upstream of the node, to be freed with it
    Faulty::apply(middle, y, fault).sum().backward();
  }
  void TearDown() override {
    EXPECT_EQ(Witness::alive, 0);
    EXPECT_EQ(allocator(kCPU).stats().allocated, before_);
  }
  int64_t before_ = allocator(kCPU).stats().allocated;
};

TEST_F(FunctionFault, NoneLeavesNothingBehind) { run(Fault::kNone); }
TEST_F(FunctionFault, AnExceptionInForwardReachesTheCaller) {
  EXPECT_THROWS(run(Fault::kForward), DataError, "forward failed");
}
TEST_F(FunctionFault, AnExceptionInBackwardReachesTheCaller) {
  EXPECT_THROWS(run(Fault::kBackward), DataError, "backward failed");
}
TEST_F(FunctionFault, TooFewGradients) {
  EXPECT_THROWS(run(Fault::kTooFew), AutogradError, "[Faulty]", "expected 2", "got 1");
}
TEST_F(FunctionFault, TooManyGradients) {
  EXPECT_THROWS(run(Fault::kTooMany), AutogradError, "[Faulty]", "expected 2", "got 3");
}
TEST_F(FunctionFault, AGradientOfTheWrongShape) {
  EXPECT_THROWS(run(Fault::kShape), AutogradError, "[FaultyBackward]", "shape", "[2]", "[3]");
}
TEST_F(FunctionFault, AGradientOfTheWrongDtype) {
  EXPECT_THROWS(run(Fault::kDType), AutogradError, "[FaultyBackward]", "dtype", "int64");
}
TEST_F(FunctionFault, AGraphThatNeverRunsIsFreed) {
  const Tensor y = Faulty::apply(leaf({1}), leaf({2}), Fault::kNone);
  EXPECT_EQ(Witness::alive, 1);
}
TEST_F(FunctionFault, DeepGraphsAreFreedWithoutRecursion) {
  Tensor y = leaf({1});
  const Tensor x = leaf({1});
  for (int i = 0; i < 50'000; ++i) y = Faulty::apply(y, x, Fault::kNone);
  y.backward();
}

TEST(Function, TheWrongNumberOfGradientsToTakeIsAnError) {
  struct Deaf : Function<Deaf> {
    static std::vector<Tensor> forward(FunctionContext&, const Tensor& x) { return {x * 1, x * 2}; }
    static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad}; }
  };
  EXPECT_THROWS(Deaf::apply(leaf({1}))[0].backward(), AutogradError, "[Deaf]", "takes 1",
                "returned 2");
}

TEST(Function, DataOfAnotherTypeIsAnError) {
  struct Confused : Function<Confused> {
    static Tensor forward(FunctionContext& ctx, const Tensor& x) {
      ctx.set_data(1.0f);
      return x * 1;
    }
    static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
      return {grad * ctx.data<double>()};
    }
  };
  EXPECT_THROWS(Confused::apply(leaf({1})).backward(), AutogradError, "[Confused]", "set_data");
}

TEST(Function, ThreadsMayRunOneGraphAtOnce) {
  const Tensor x = leaf({2});
  const Tensor y = Cube::apply(Exp::apply(x), 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int step = 0; step < 50; ++step) y.backward({}, /*retain_graph=*/true);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(x.grad().item<double>(), 200 * 3 * std::exp(6.0), 1e-6);
}

}  // namespace
}  // namespace lockstep
