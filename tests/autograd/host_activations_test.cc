#include "autograd/host_activations.h"

#include <gtest/gtest.h>

#include <any>
#include <cstring>
#include <optional>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/hooks.h"
#include "core/base/error.h"
#include "core/device/stream_sanitizer.h"
#include "core/device/waits.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/autograd/throws.h"
#include "tests/core/device/sanitized_streams.h"

namespace lockstep {
namespace {

const Device kHost{DeviceType::kHost, 0};
constexpr int64_t kRows = 64, kWidth = 128;
constexpr int64_t kActivation = kRows * kWidth * static_cast<int64_t>(sizeof(float));

/// A chain of layers whose activations are all of one size.
struct Chain {
  explicit Chain(Device device, int layers = 6) {
    manual_seed(3);
    for (int i = 0; i < layers; ++i) {
      weights.push_back(device.type == DeviceType::kMeta
                            ? empty({kWidth, kWidth}, {DType::kF32, device})
                            : mul(randn({kWidth, kWidth}), 0.1).to(device));
      weights.back().set_requires_grad();
    }
    input = device.type == DeviceType::kMeta ? empty({kRows, kWidth}, {DType::kF32, device})
                                             : randn({kRows, kWidth}).to(device);
  }
  Tensor loss() const {
    Tensor x = input;
    for (const Tensor& weight : weights) x = tanh(x.matmul(weight));
    return x.sum();
  }
  std::vector<Tensor> gradients() const {
    std::vector<Tensor> found;
    for (const Tensor& weight : weights) {
      found.push_back(weight.grad().to(kCPU));
      weight.set_grad({});
    }
    return found;
  }
  std::vector<Tensor> weights;
  Tensor input;
};

bool have_equal_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i].sizes(), b[i].sizes()) || a[i].dtype() != b[i].dtype()) return false;
    if (std::memcmp(a[i].data(), b[i].data(), a[i].nbytes()) != 0) return false;
  }
  return true;
}

HostActivationsOptions at_most(int64_t activations) {
  return {.least_bytes = 1024, .bytes_on_the_way = activations * kActivation};
}

TEST(HostActivations, ChangeNoBitOfAnyGradient) {
  const Chain chain(kHost);
  chain.loss().backward();
  const std::vector<Tensor> expected = chain.gradients();
  const SanitizedStreams sanitized;
  for (const int64_t on_the_way : {0, 1, 3, 100}) {
    const HostActivations host(kHost, chain.weights, at_most(on_the_way));
    for (int step = 0; step < 3; ++step) {
      Tensor loss;
      {
        const SavedTensorHooksGuard guard(host.hooks());
        loss = chain.loss();
      }
      loss.backward();
      EXPECT_TRUE(have_equal_bits(chain.gradients(), expected)) << on_the_way << " " << step;
    }
    // The input and the result of each layer, each once.
    EXPECT_EQ(host.copied_bytes(), 3 * kActivation * (1 + std::ssize(chain.weights))) << on_the_way;
  }
  EXPECT_EQ(stream_sanitizer::reports(), 0);
}

TEST(HostActivations, TheDeviceHoldsWhatIsOnItsWayAlone) {
  const auto live_after_forward = [](std::optional<int64_t> on_the_way) {
    const Chain chain(kHost, 20);
    std::optional<HostActivations> host;
    std::optional<SavedTensorHooksGuard> guard;
    if (on_the_way) {
      host.emplace(kHost, chain.weights, at_most(*on_the_way));
      guard.emplace(host->hooks());
    }
    synchronize(kHost);
    const int64_t before = allocator(kHost).stats().allocated;
    const Tensor loss = chain.loss();
    synchronize(kHost);
    return (allocator(kHost).stats().allocated - before) / kActivation;
  };
  EXPECT_GE(live_after_forward(std::nullopt), 20);
  EXPECT_LE(live_after_forward(2), 3);
  EXPECT_LE(live_after_forward(8), 9);
  EXPECT_GE(live_after_forward(8), 7);
}

TEST(HostActivations, ALargeTensorThatHasLeftCountsNoMoreForThoseBehindIt) {
  const HostActivations host(kHost, {}, at_most(3));
  const SavedTensorHooks hooks = host.hooks();
  std::vector<std::any> packed;
  const auto save = [&](int64_t activations) {
    packed.push_back(hooks.pack(empty({activations * kActivation / 4}, {DType::kF32, kHost})));
  };
  synchronize(kHost);
  const int64_t before = allocator(kHost).stats().allocated;
  save(10);
  for (int i = 0; i < 20; ++i) save(1);
  synchronize(kHost);
  EXPECT_LE((allocator(kHost).stats().allocated - before) / kActivation, 3);
}

TEST(HostActivations, TheDeviceGetsBackAheadWhatMayBeOnItsWay) {
  // In the middle of backward.
  const auto live_in_backward = [](int64_t on_the_way) {
    const Chain chain(kHost, 20);
    const HostActivations host(kHost, chain.weights, at_most(on_the_way));
    synchronize(kHost);
    const int64_t before = allocator(kHost).stats().allocated;
    int64_t live = 0;
    const HookHandle hook = register_hook(chain.weights[12], [&](const Tensor& gradient) {
      synchronize(kHost);
      live = (allocator(kHost).stats().allocated - before) / kActivation;
      return gradient;
    });
    const SavedTensorHooksGuard guard(host.hooks());
    chain.loss().backward();
    return live;
  };
  const int64_t none = live_in_backward(0);
  EXPECT_EQ(live_in_backward(3), none + 3);
  EXPECT_EQ(live_in_backward(8), none + 8);
}

TEST(HostActivations, NothingWaitsOnTheHost) {
  const Chain chain(kHost, 12);
  const HostActivations host(kHost, chain.weights, at_most(2));
  const int64_t before = hidden_waits();
  {
    const SavedTensorHooksGuard guard(host.hooks());
    chain.loss().backward();
  }
  EXPECT_EQ(hidden_waits(), before);
  EXPECT_GT(host.copied_bytes(), 0);
}

TEST(HostActivations, ViewsComeBackWithTheirStrides) {
  const Tensor whole = mul(randn({kRows, 2 * kWidth}).to(kHost), 1).set_requires_grad();
  const HostActivations host(kHost, {}, at_most(0));
  Dims seen;
  const auto loss = [&] {
    const Tensor joint = whole * 2;  // one storage with two windows, as of a joint product
    const Tensor left = joint.slice(1, 0, kWidth), right = joint.slice(1, kWidth, 2 * kWidth);
    return left.t().matmul(right).sum() + (left * right).sum();
  };
  loss().backward();
  const Tensor expected = whole.grad().to(kCPU);
  whole.set_grad({});
  {
    const SavedTensorHooksGuard guard(host.hooks());
    const Tensor sum = loss();
    sum.backward();
  }
  EXPECT_TRUE(have_equal_bits({whole.grad().to(kCPU)}, {expected}));
  const Tensor joint = whole.detach() * 2;
  const SavedTensorHooks hooks = host.hooks();
  const Tensor window = joint.slice(1, 3, kWidth).t();
  const Tensor back = hooks.unpack(hooks.pack(window));
  EXPECT_TRUE(same(back.strides(), window.strides()));
  EXPECT_EQ(back.storage_offset(), window.storage_offset());
  EXPECT_TRUE(have_equal_bits({back.to(kCPU)}, {window.to(kCPU)}));
}

TEST(HostActivations, ParametersTheirCastsAndSmallOnesStay) {
  const Chain chain(kHost, 2);
  const HostActivations host(kHost, chain.weights, at_most(0));
  const SavedTensorHooks hooks = host.hooks();
  (void)hooks.pack(chain.weights[0].detach());
  (void)hooks.pack(empty({8}, {DType::kF32, kHost}));
  (void)hooks.pack(empty({kRows, kWidth}));
  {
    const AutocastGuard region(DeviceType::kHost, true, DType::kBF16);
    const Tensor product = chain.input.matmul(chain.weights[0]);
    const SavedTensorHooksGuard guard(hooks);
    (void)chain.input.matmul(chain.weights[0]);
  }
  EXPECT_EQ(host.copied_bytes(), kActivation / 2) << "the cast of the input alone";
}

TEST(HostActivations, AChangeInPlaceIsNoticedWhileItIsOnTheDevice) {
  const Chain chain(kHost, 2);
  const HostActivations host(kHost, chain.weights, at_most(100));
  const SavedTensorHooksGuard guard(host.hooks());
  Tensor x = mul(chain.input, 1);
  const Tensor loss = x.matmul(chain.weights[0]).sum();
  synchronize(kHost);  // the copy to the host, whose bytes the change makes useless, reads x
  x.mul_(x);
  EXPECT_THROWS(loss.backward(), AutogradError, "changed in place", "[64, 128]");
}

TEST(HostActivations, AGraphMayBeKeptAndOutlivesThem) {
  const Chain chain(kHost);
  chain.loss().backward();
  const std::vector<Tensor> expected = chain.gradients();
  Tensor loss;
  {
    const HostActivations host(kHost, chain.weights, at_most(1));
    const SavedTensorHooksGuard guard(host.hooks());
    loss = chain.loss();
  }
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_TRUE(have_equal_bits(chain.gradients(), expected));
  loss.backward();
  EXPECT_TRUE(have_equal_bits(chain.gradients(), expected));
}

TEST(HostActivations, OnMetaMemoryIsThatOfADevice) {
  const auto peak = [](std::optional<int64_t> on_the_way) {
    const Chain chain(kMeta, 20);
    for (size_t i = 1; i < chain.weights.size(); ++i) chain.weights[i].set_requires_grad(false);
    allocator(kMeta).reset_peak();
    const int64_t before = allocator(kMeta).stats().allocated;
    std::optional<HostActivations> host;
    std::optional<SavedTensorHooksGuard> guard;
    if (on_the_way) {
      host.emplace(kMeta, chain.weights, at_most(*on_the_way));
      guard.emplace(host->hooks());
    }
    chain.loss().backward();
    return allocator(kMeta).stats().peak_allocated - before;
  };
  EXPECT_LE(peak(2), peak(std::nullopt) - 14 * kActivation);
}

TEST(HostActivations, ADeviceWithTheHostsMemoryIsRefused) {
  EXPECT_THROWS(HostActivations(kCPU, {}), DeviceError, "[host_activations]", "cpu");
}

}  // namespace
}  // namespace lockstep
