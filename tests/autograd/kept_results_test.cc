// Checkpoints that keep the results of products and compute the rest again.

#include "autograd/kept_results.h"

#include <gtest/gtest.h>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/dispatch/op_counter.h"
#include "core/ops/attention/attention.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/fused_linear.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/allocator.h"
#include "core/tensor/generator.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;

const CheckpointOptions kKeep{.keep_products = true};

int64_t allocated() { return allocator(kCPU).stats().allocated; }

/// Operators called in the backward of f(x), by name.
template <class F>
OpCounter::Counts called_in_backward(const CheckpointOptions& options, const F& f,
                                     const Tensor& x) {
  const Tensor y = checkpoint(options, f, x).sum();
  OpCounter counter;
  {
    const ModeGuard on(counter);
    y.backward();
  }
  OpCounter::Counts all;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    for (const auto& [name, count] : counter.counts(phase)) all[name] += count;
  }
  return all;
}

struct Layers {
  Layers() {
    manual_seed(3);
    for (Tensor& weight : weights) weight = mul(randn({64, 64}), 0.2).set_requires_grad();
    x = randn({64, 64}).set_requires_grad();
  }
  Tensor operator()(const Tensor& input) const {
    Tensor y = input;
    for (const Tensor& weight : weights) y = mm(y.tanh().exp(), weight);
    return y;
  }
  Tensor weights[3];
  Tensor x;
};

TEST(KeptResults, ProductsAreNotComputedAgain) {
  const Layers plain, kept, whole;
  plain(plain.x).sum().backward();
  const auto of_kept = called_in_backward(kKeep, kept, kept.x);
  const auto of_whole = called_in_backward({}, whole, whole.x);
  EXPECT_EQ(of_kept.at("mm").calls, 6) << "two for each layer's gradients";
  EXPECT_EQ(of_whole.at("mm").calls, 8) << "and all but the last, whose result is not needed";
  EXPECT_EQ(of_kept.at("tanh").calls, 3);
  EXPECT_EQ(elements(kept.x.grad()), elements(plain.x.grad()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(elements(kept.weights[i].grad()), elements(plain.weights[i].grad()));
  }
}

TEST(KeptResults, TheRestIsNotKept) {
  const Layers layers;
  const auto bytes = static_cast<int64_t>(layers.x.nbytes());
  const auto held = [&](const auto& run) {
    const int64_t before = allocated();
    const Tensor y = run();
    return (allocated() - before) / bytes;
  };
  EXPECT_EQ(held([&] { return layers(layers.x); }), 7) << "three of tanh and exp, and the result";
  EXPECT_EQ(held([&] { return checkpoint(kKeep, layers, layers.x); }), 3);
  EXPECT_EQ(held([&] { return checkpoint(layers, layers.x); }), 1);
}

TEST(KeptResults, TheGeluOfAProductIsComputedAgainOnRequest) {
  manual_seed(3);
  const Tensor w = randn({256, 64}).set_requires_grad(), v = randn({64, 256}).set_requires_grad();
  const auto run = [&](const Tensor& input) { return linear_of_gelu(linear_gelu(input, w), v); };
  const auto bytes_and_gradients = [&](auto with) {
    const Tensor x = randn({64, 64}).set_requires_grad();
    manual_seed(4);
    uniform_(x.detach(), -1, 1);
    w.set_grad({});
    v.set_grad({});
    const int64_t before = allocated();
    const Tensor y = with(x);
    const int64_t held = (allocated() - before) / static_cast<int64_t>(x.nbytes());
    y.sum().backward();
    return std::tuple(held, elements(x.grad()), elements(w.grad()), elements(v.grad()));
  };
  const auto plain = bytes_and_gradients(run);
  const auto kept = bytes_and_gradients([&](const Tensor& x) { return checkpoint(kKeep, run, x); });
  const CheckpointOptions again{.keep_products = true, .recompute_gelu = true};
  const auto least =
      bytes_and_gradients([&](const Tensor& x) { return checkpoint(again, run, x); });
  EXPECT_EQ(std::get<0>(plain), 9) << "the gelu, its argument and the result";
  EXPECT_EQ(std::get<0>(kept), 9);
  EXPECT_EQ(std::get<0>(least), 5);
  EXPECT_EQ(kept, plain);
  EXPECT_EQ(std::tie(std::get<1>(least), std::get<2>(least), std::get<3>(least)),
            std::tie(std::get<1>(plain), std::get<2>(plain), std::get<3>(plain)));
}

TEST(KeptResults, GoWithTheGraph) {
  const Layers layers;
  const int64_t before = allocated();
  { const Tensor y = checkpoint(kKeep, layers, layers.x); }
  EXPECT_EQ(allocated(), before) << "no cycle of references keeps them";
}

TEST(KeptResults, ServeASecondBackward) {
  const Layers once, twice;
  for (int i = 0; i < 2; ++i) once(once.x).sum().backward();
  const Tensor y = checkpoint(kKeep, twice, twice.x).sum();
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  EXPECT_EQ(elements(twice.x.grad()), elements(once.x.grad()));
}

/// Draws before, in and after an operator whose results are kept.
Tensor noisy_attention(const Tensor& x) {
  const Tensor a = dropout(x, 0.3, true);
  return dropout(scaled_dot_product_attention(a, a, a, {}, 0.3), 0.3, true).tanh();
}

TEST(KeptResults, TheRestDrawsTheSameRandomNumbers) {
  const auto gradient = [](bool keeps) {
    manual_seed(5);
    const Tensor x = randn({2, 2, 8, 4}).set_requires_grad();
    const Tensor y = keeps ? checkpoint(kKeep, noisy_attention, x) : noisy_attention(x);
    const double next = randn({}).item<double>();
    y.sum().backward();
    EXPECT_NE(randn({}).item<double>(), next);
    return std::pair(elements(x.grad()), next);
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(KeptResults, WorkUnderAutocastAndVmap) {
  for (const bool in_vmap : {false, true}) {
    const auto gradient = [&](bool keeps) {
      const Layers layers;
      const AutocastGuard autocast(DeviceType::kCPU, true, DType::kF16);
      const auto run = [&](const Tensor& x) {
        return keeps ? checkpoint(kKeep, layers, x) : layers(x);
      };
      const Tensor x = in_vmap ? layers.x.view({4, 16, 64}) : layers.x;
      const Tensor y = in_vmap ? vmap(run)(x) : run(x);
      y.to(DType::kF32).sum().backward();
      return std::pair(elements(layers.x.grad()), elements(layers.weights[0].grad()));
    };
    EXPECT_EQ(gradient(true), gradient(false)) << in_vmap;
  }
}

TEST(KeptResults, ChangedInPlaceAreRefused) {
  const Layers layers;
  const auto changes = [&](const Tensor& x) { return mul_(mm(x, layers.weights[0]), 2).tanh(); };
  const Tensor y = checkpoint(kKeep, changes, layers.x).sum();
  EXPECT_THROWS(y.backward(), AutogradError, "changed in place");
}

TEST(KeptResults, AnotherOperatorThanForwardsIsRefused) {
  const Layers layers;
  int calls = 0;
  const auto differs = [&](const Tensor& x) {
    const Tensor& w = layers.weights[0];
    return calls++ == 0 ? mm(x, w).tanh() : linear_add(x, x, w).tanh();
  };
  const Tensor y = checkpoint(kKeep, differs, layers.x).sum();
  EXPECT_THROWS(y.backward(), AutogradError, "expected mm as the 1. product, got _linear_add");
}

TEST(KeptResults, MoreProductsThanForwardsAreRefused) {
  const Layers layers;
  int calls = 0;
  const auto differs = [&](const Tensor& x) {
    const Tensor product = mm(x, layers.weights[0]);
    return calls++ == 0 ? product.tanh() : mm(product, layers.weights[0]).tanh();
  };
  const CheckpointOptions to_the_end{.early_stop = false, .keep_products = true};
  const Tensor y = checkpoint(to_the_end, differs, layers.x).sum();
  EXPECT_THROWS(y.backward(), AutogradError, "expected no operator as the 2. product, got mm");
}

}  // namespace
}  // namespace lockstep
