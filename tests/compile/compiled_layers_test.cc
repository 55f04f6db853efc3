#include "compile/compiled_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/accumulate_grad.h"
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "autograd/grad_mode.h"
#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "compile/program.h"
#include "core/device/copies.h"
#include "core/dispatch/observer.h"
#include "core/dispatch/op_counter.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/fused_linear.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A layer with parameters of its own: a norm, two products with a gelu between them, a residual.
struct Feed {
  Tensor scale = randn({8}).set_requires_grad();
  Tensor up = randn({16, 8}).set_requires_grad();
  Tensor up_bias = randn({16}).set_requires_grad();
  Tensor down = randn({8, 16}).set_requires_grad();

  std::vector<Tensor> parameters() const { return {scale, up, up_bias, down}; }
  Tensor forward(const Tensor& x) const {
    const Tensor normed = layer_norm(x, {8}, scale, {}, 1e-5);
    return linear_of_gelu(linear_gelu(normed, up, up_bias), down, {}, x);
  }
};

Tensor call(const CompiledLayers& layers, const Feed& feed, const Tensor& x) {
  const compiler::Body body = [&](TensorList inputs) {
    return std::vector<Tensor>{feed.forward(inputs[0])};
  };
  const std::vector<Tensor> parameters = feed.parameters();
  return layers(body, {.inputs = TensorList(&x, 1), .parameters = parameters})[0];
}

std::vector<Tensor> feed_gradients(const Feed& feed,
                                   const std::function<Tensor(const Tensor&)>& run) {
  const Tensor x = arange(48, TensorOptions(DType::kF32)).view({2, 3, 8}).mul(0.1);
  x.set_requires_grad();
  const Tensor y = run(x);
  std::vector<Tensor> all = feed.parameters();
  all.push_back(x);
  std::vector<Tensor> results = grad({y.mul(y).sum()}, all);
  results.push_back(y.detach());
  return results;
}

void expect_same_bits(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(equal(got[i], want[i])) << i;
}

TEST(CompiledLayers, ALayerMayReadNeitherItsInputNorItsParameters) {
  const CompiledLayers layers;
  const Tensor x = randn({2, 8});
  const std::vector<Tensor> parameters = Feed().parameters();
  const compiler::Body body = [](TensorList inputs) {
    return std::vector<Tensor>{full(inputs[0].sizes(), 3).add(1)};
  };
  for (int i = 0; i < 2; ++i) {
    const Tensor y = layers(body, {.inputs = TensorList(&x, 1), .parameters = parameters})[0];
    EXPECT_TRUE(equal(y, full({2, 8}, 4)));
  }
}

TEST(CompiledLayers, OneProgramServesLayersThatAreAlike) {
  const CompiledLayers layers;
  const std::vector<Feed> feeds(3);
  for (const Feed& feed : feeds) {
    expect_same_bits(feed_gradients(feed, [&](const Tensor& x) { return call(layers, feed, x); }),
                     feed_gradients(feed, [&](const Tensor& x) { return feed.forward(x); }));
  }
  EXPECT_EQ(layers.counts().recorded, 1);
  EXPECT_EQ(layers.counts().replayed, 2);
  EXPECT_THAT(layers.reasons(), IsEmpty());
}

TEST(CompiledLayers, CastsThatAreKeptAreReadAndNotMadeAgain) {
  const CompiledLayers layers;
  const std::vector<Feed> feeds(2);
  for (const Feed& feed : feeds) {
    for (const Tensor& each : feed.parameters()) keep_cast(each);
  }
  for (int step = 0; step < 3; ++step) {
    for (const Feed& feed : feeds) {
      const AutocastGuard autocast(DeviceType::kCPU);
      expect_same_bits(feed_gradients(feed, [&](const Tensor& x) { return call(layers, feed, x); }),
                       feed_gradients(feed, [&](const Tensor& x) { return feed.forward(x); }));
    }
    const NoGradGuard no_grad;
    for (const Feed& feed : feeds) {
      for (const Tensor& each : feed.parameters()) each.mul_(1.25);
    }
  }
  ASSERT_THAT(layers.programs(), ::testing::SizeIs(1));
  for (const compiler::Node& node : layers.programs()[0]->forward().nodes) {
    compiler::each_read(node, [&](compiler::ValueId id) {
      const compiler::ValueType& type =
          layers.programs()[0]->forward().values[static_cast<size_t>(id)];
      const bool is_weight = type.dtype == DType::kF32 && type.sizes.size() == 2;
      EXPECT_FALSE(is_weight) << node.op->name() << " reads a weight that is to be cast";
    });
  }
}

TEST(CompiledLayers, GradientsEndInTheirDestinationsWithoutMoreCopies) {
  const CompiledLayers layers;
  const Feed feed;
  std::vector<Tensor> places;
  for (const Tensor& each : {feed.up, feed.down}) {
    places.push_back(empty(each.sizes()));
    set_grad_destination(each, places.back());
  }
  const Tensor x = randn({2, 3, 8});
  for (int step = 0; step < 3; ++step) {
    for (const Tensor& each : feed.parameters()) each.set_grad({});
    int64_t before = hidden_copies().copies;
    feed.forward(x).sum().backward();
    const int64_t copies = hidden_copies().copies - before;
    const std::vector<Tensor> want = {feed.up.grad().clone(), feed.down.grad().clone()};
    for (const Tensor& each : feed.parameters()) each.set_grad({});
    before = hidden_copies().copies;
    call(layers, feed, x).sum().backward();
    EXPECT_LE(hidden_copies().copies - before, copies);
    EXPECT_EQ(feed.up.grad().data(), places[0].data());
    EXPECT_EQ(feed.down.grad().data(), places[1].data());
    expect_same_bits({feed.up.grad(), feed.down.grad()}, want);
    // The second micro-batch of a step adds to what is there.
    call(layers, feed, x).sum().backward();
    feed.forward(x);
    expect_same_bits({feed.up.grad(), feed.down.grad()},
                     {want[0].add(want[0]), want[1].add(want[1])});
  }
}

TEST(CompiledLayers, RandomNumbersAreThoseOfTheLayersInTurn) {
  const Tensor weights[] = {ones({4}).set_requires_grad(), ones({4}).set_requires_grad(),
                            ones({4}).set_requires_grad()};
  const auto layer = [](const Tensor& weight, TensorList inputs) {
    return std::vector<Tensor>{dropout(inputs[0].mul(weight), 0.5, true)};
  };
  const Tensor x = ones({64, 4});
  const CompiledLayers layers;
  std::vector<Tensor> got, want;
  for (std::vector<Tensor>* const results : {&want, &got}) {
    default_generator().manual_seed(7);
    for (int pass = 0; pass < 2; ++pass) {
      for (const Tensor& weight : weights) {
        const compiler::Body body = [&](TensorList inputs) { return layer(weight, inputs); };
        results->push_back(results == &want
                               ? body(TensorList(&x, 1))[0]
                               : layers(body, {TensorList(&x, 1), TensorList(&weight, 1)})[0]);
      }
    }
  }
  expect_same_bits(got, want);
  EXPECT_EQ(layers.counts().recorded, 1);
}

/// A layer that cannot be compiled has to give what it gives, and to say why.
void expect_called(const std::function<Tensor(const Tensor&, const Tensor& weight)>& layer,
                   const std::string& reason) {
  const CompiledLayers layers;
  for (const double factor : {1.0, 2.0}) {
    const Tensor weight = ones({3}).mul(factor).set_requires_grad();
    const Tensor x = ones({2, 3});
    const compiler::Body body = [&](TensorList inputs) {
      return std::vector<Tensor>{layer(inputs[0], weight)};
    };
    const Tensor got = layers(body, {TensorList(&x, 1), TensorList(&weight, 1)})[0];
    EXPECT_TRUE(equal(got, layer(ones({2, 3}), weight)));
  }
  EXPECT_EQ(layers.counts().eager, 2);
  EXPECT_THAT(layers.reasons(), ElementsAre(HasSubstr(reason)));
}

TEST(CompiledLayers, LayersThatOneProgramCannotServeAreCalled) {
  const Tensor other = ones({3}).mul(5);
  expect_called([&](const Tensor& x, const Tensor& weight) { return x.mul(weight).add(other); },
                "neither an argument nor a parameter");
  expect_called(
      [](const Tensor& x, const Tensor&) {
        return x.view({3, 2});
      },
      "an argument, or a view of one");
  expect_called(
      [](const Tensor& x, const Tensor& weight) {
        x.add_(0);
        return x.mul(weight);
      },
      "it changes a tensor");
  expect_called(
      [](const Tensor& x, const Tensor& weight) {
        return x.mul(weight).sum().item<float>() > 0 ? x.mul(weight) : x.add(weight);
      },
      "it reads values on the host");
}

/// Counts the operators that it is told of.
class CallCounter final : public CallObserver {
 public:
  void enter(const Operator&, KeySet, const Stack&) override { ++calls; }
  void exit(const Operator&, const Stack&) noexcept override {}
  int calls = 0;
};

TEST(CompiledLayers, ErrorsOfALayerReachTheCaller) {
  const CompiledLayers layers;
  const Tensor x = ones({2, 3});
  const compiler::Body body = [](TensorList inputs) {
    return std::vector<Tensor>{inputs[0].mm(ones({5, 5}))};
  };
  for (int i = 0; i < 2; ++i) EXPECT_THROW(layers(body, {TensorList(&x, 1), {}}), ShapeError);
}

TEST(CompiledLayers, AParameterThatIsThereTwiceHasNoProgram) {
  const CompiledLayers layers;
  const Tensor x = ones({2, 3});
  const Tensor a = ones({3}).mul(2), b = ones({3}).mul(5);
  const auto sum_of = [&](const Tensor& first, const Tensor& second) {
    const compiler::Body body = [&](TensorList inputs) {
      return std::vector<Tensor>{inputs[0].mul(first).add(second)};
    };
    const Tensor both[] = {first, second};
    return layers(body, {TensorList(&x, 1), TensorList(both, 2)})[0];
  };
  EXPECT_TRUE(equal(sum_of(a, a), x.mul(a).add(a)));
  EXPECT_TRUE(equal(sum_of(a, b), x.mul(a).add(b)));
  EXPECT_THAT(layers.reasons(), ElementsAre(HasSubstr("two of its parameters are one tensor")));
}

TEST(CompiledLayers, WhoLooksAtOperatorsSeesThoseOfTheLayer) {
  const CompiledLayers layers;
  const Feed feed;
  const Tensor x = randn({2, 3, 8});
  call(layers, feed, x).sum().backward();
  CallCounter seen, expected;
  {
    const ObserverGuard on(seen);
    (void)call(layers, feed, x);
  }
  {
    const ObserverGuard on(expected);
    (void)feed.forward(x);
  }
  EXPECT_EQ(seen.calls, expected.calls);
  OpCounter by_mode, expected_by_mode;
  {
    const ModeGuard on(by_mode);
    (void)call(layers, feed, x);
  }
  {
    const ModeGuard on(expected_by_mode);
    (void)feed.forward(x);
  }
  EXPECT_EQ(by_mode.total(), expected_by_mode.total());
  EXPECT_EQ(layers.counts().eager, 2);
  EXPECT_THAT(layers.reasons(),
              ElementsAre(HasSubstr("an observer looks"), HasSubstr("a mode looks")));
}

TEST(CompiledLayers, CheckpointsRecomputeTheLayerItself) {
  const CompiledLayers layers;
  const Feed feed;
  const auto run = [&](const Tensor& x) {
    return checkpoint([&](const Tensor& input) { return call(layers, feed, input); }, x);
  };
  for (int i = 0; i < 2; ++i) {
    expect_same_bits(feed_gradients(feed, run),
                     feed_gradients(feed, [&](const Tensor& x) { return feed.forward(x); }));
  }
  EXPECT_EQ(layers.counts().recorded, 0);
  EXPECT_THAT(layers.reasons(), ElementsAre(HasSubstr("hooks keep what is saved")));
}

TEST(CompiledLayers, HooksOfAccumulationAreCalledInEachBackward) {
  const CompiledLayers layers;
  const Feed feed;
  int before = 0, after = 0;
  const HookHandle first =
      register_prehook(*gradient_edge(feed.up).node, [&](std::span<Tensor>) { ++before; });
  const HookHandle second =
      register_post_accumulate_grad_hook(feed.up, [&](const Tensor&) { ++after; });
  for (int i = 1; i <= 3; ++i) {
    call(layers, feed, randn({2, 3, 8})).sum().backward();
    EXPECT_EQ(before, i);
    EXPECT_EQ(after, i);
  }
  EXPECT_EQ(layers.counts().recorded + layers.counts().replayed, 3);
}

TEST(CompiledLayers, FrozenParametersGetNoGradient) {
  const CompiledLayers layers;
  Feed feed;
  feed.up.set_requires_grad(false);
  const Tensor x = randn({2, 3, 8});
  for (int i = 0; i < 2; ++i) call(layers, feed, x).sum().backward();
  EXPECT_FALSE(feed.up.grad().defined());
  EXPECT_TRUE(feed.down.grad().defined());
  feed.up.set_requires_grad(true);
  call(layers, feed, x).sum().backward();
  EXPECT_TRUE(feed.up.grad().defined());
  EXPECT_EQ(layers.counts().recorded, 2);
}

}  // namespace
}  // namespace lockstep
