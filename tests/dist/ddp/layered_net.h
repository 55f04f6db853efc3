#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "dist/ddp/reducer.h"

namespace lockstep::dist {

/// A module of layers with one square weight each; the loss of sample s is the sum of the outputs
/// for its row.
struct LayeredNet {
  std::vector<NamedTensor> parameters;

  explicit LayeredNet(Device device = kCPU, int layers = 5, int64_t width = 24) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-0.3F, 0.3F);
    for (int layer = 0; layer < layers; ++layer) {
      const Tensor weight = empty({width, width}, DType::kF32);
      std::generate_n(weight.data<float>(), weight.numel(), [&] { return uniform(random); });
      const Tensor here = device == kCPU ? weight : weight.to(device);
      parameters.push_back({"layer" + std::to_string(layer), here.set_requires_grad()});
    }
  }

  const std::vector<NamedTensor>& named_parameters() const { return parameters; }
  std::vector<NamedTensor> named_buffers() const { return {}; }

  int64_t width() const { return parameters[0].tensor.size(0); }
  Tensor loss(int64_t sample) const { return loss(sample, parameters.size()); }
  /// The loss of a net of the first `layers` layers.
  Tensor loss(int64_t sample, size_t layers) const {
    std::mt19937 random(static_cast<uint32_t>(sample) + 100);
    std::normal_distribution<float> normal;
    const Tensor row = empty({1, width()}, DType::kF32);
    std::generate_n(row.data<float>(), row.numel(), [&] { return normal(random); });
    Tensor x = row.to(parameters[0].tensor.device());
    for (size_t layer = 0; layer < layers; ++layer) x = tanh(mm(x, parameters[layer].tensor));
    return sum(x);
  }
};

/// The elements of all tensors, one tensor after another.
inline std::vector<float> numbers(const std::vector<Tensor>& tensors) {
  std::vector<float> result;
  for (const Tensor& each : tensors) {
    const Tensor here = each.to(kCPU).contiguous();
    result.insert(result.end(), here.data<float>(), here.data<float>() + here.numel());
  }
  return result;
}

/// Runs a step of these leaves. Leaf i has the `per_leaf` samples from first_sample + i * per_leaf
/// on.
inline void run_step(Reducer& reducer, const LayeredNet& net, const LeafRange& leaves,
                     int64_t first_sample = 0, int64_t per_leaf = 2) {
  reducer.begin_step();
  for (int64_t leaf = leaves.first; leaf < leaves.end; ++leaf) {
    reducer.begin_leaf();
    for (int64_t i = 0; i < per_leaf; ++i) {
      const Tensor loss = net.loss(first_sample + leaf * per_leaf + i);
      if (leaf + 1 == leaves.end && i + 1 == per_leaf) reducer.expect_last_backward();
      loss.backward();
    }
  }
  reducer.finish();
}

}  // namespace lockstep::dist
