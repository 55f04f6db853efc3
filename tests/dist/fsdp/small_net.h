#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "nn/layers.h"

namespace lockstep::dist {

/// Layers of 64 x 64 with biases between two of the net's own weights; the loss of sample s is that
/// of its row.
struct SmallNet : nn::Module {
  static constexpr int64_t kWidth = 64;

  explicit SmallNet(int layers = 3)
      : first(register_parameter("first", random({kWidth}, 1))),
        last(register_parameter("last", random({kWidth}, 2))) {
    for (int i = 0; i < layers; ++i) {
      blocks.push_back(std::make_unique<nn::Linear>(kWidth, kWidth, true));
      register_module("blocks." + std::to_string(i), *blocks.back());
      blocks.back()->weight.detach().copy_(random({kWidth, kWidth}, 10 + i));
    }
  }

  std::vector<nn::Module*> sequence() const {
    std::vector<nn::Module*> list;
    for (const auto& each : blocks) list.push_back(each.get());
    return list;
  }

  Tensor forward(const Tensor& x) const {
    return run_forward(
        [this](const Tensor& input) {
          Tensor y = input * first;
          for (const auto& block : blocks) y = tanh(block->forward(y));
          return y * last;
        },
        x);
  }
  Tensor loss(int sample) const { return sum(forward(random({1, kWidth}, 100 + sample))); }

  static Tensor random(std::vector<int64_t> shape, int seed) {
    std::mt19937 engine(static_cast<uint32_t>(seed));
    std::normal_distribution<float> normal(0, 0.2F);
    const Tensor result = empty(shape, {DType::kF32, kCPU});
    float* const numbers = result.data<float>();
    for (int64_t i = 0; i < result.numel(); ++i) numbers[i] = normal(engine);
    return result;
  }

  Tensor first;
  Tensor last;
  std::vector<std::unique_ptr<nn::Linear>> blocks;
};

inline std::vector<float> values_of(const Tensor& tensor) {
  const Tensor here = tensor.detach().to(kCPU).contiguous();
  return {here.data<float>(), here.data<float>() + here.numel()};
}

}  // namespace lockstep::dist
