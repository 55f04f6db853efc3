#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "dist/ddp/reducer.h"

namespace lockstep::dist {

/// The least that a module must have to be sharded: named parameters, a path, forward hooks.
class HookedModule {
 public:
  using PreHook = std::function<void(const HookedModule&, std::span<Tensor>)>;
  using Hook = std::function<void(const HookedModule&, std::span<const Tensor>, std::span<Tensor>)>;
  /// Removes nothing: a test's hooks live as long as its module.
  struct Handle {
    void remove() {}
  };

  explicit HookedModule(std::string path) : path_(std::move(path)) {}
  HookedModule(const HookedModule&) = delete;
  HookedModule& operator=(const HookedModule&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<NamedTensor>& named_parameters() const { return parameters_; }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> list;
    for (const NamedTensor& each : parameters_) list.push_back(each.tensor);
    return list;
  }
  void zero_grad() const {
    for (const NamedTensor& each : parameters_) each.tensor.set_grad({});
  }
  Handle register_forward_pre_hook(PreHook hook) const {
    before_.push_back(std::move(hook));
    return {};
  }
  Handle register_forward_hook(Hook hook) const {
    after_.push_back(std::move(hook));
    return {};
  }

 protected:
  Tensor add_parameter(const std::string& name, const Tensor& tensor) {
    parameters_.push_back({name, tensor.set_requires_grad()});
    return tensor;
  }
  void add_parameters_of(const HookedModule& module) {
    for (const NamedTensor& each : module.parameters_) {
      parameters_.push_back({module.path_ + "." + each.name, each.tensor});
    }
  }
  template <class Body>
  Tensor run_forward(const Body& body, Tensor input) const {
    for (const PreHook& hook : before_) hook(*this, {&input, 1});
    Tensor output = body(input);
    for (const Hook& hook : after_) hook(*this, {&input, 1}, {&output, 1});
    return output;
  }

 private:
  std::string path_;
  std::vector<NamedTensor> parameters_;
  mutable std::vector<PreHook> before_;
  mutable std::vector<Hook> after_;
};

inline Tensor random_tensor(std::vector<int64_t> shape, int seed) {
  std::mt19937 engine(static_cast<uint32_t>(seed));
  std::normal_distribution<float> normal(0, 0.2F);
  const Tensor result = empty(shape, {DType::kF32, kCPU});
  std::generate_n(result.data<float>(), result.numel(), [&] { return normal(engine); });
  return result;
}

/// y = x W^T + b.
struct Layer : HookedModule {
  Layer(std::string path, const Tensor& w, const Tensor& b)
      : HookedModule(std::move(path)),
        weight(add_parameter("weight", w)),
        bias(add_parameter("bias", b)) {}
  Tensor forward(const Tensor& x) const {
    return run_forward([this](const Tensor& input) { return linear(input, weight, bias); }, x);
  }

  Tensor weight;
  Tensor bias;
};

/// Layers of 64 x 64 between two of the net's own weights; the loss of sample s is that of its row.
struct SmallNet : HookedModule {
  static constexpr int64_t kWidth = 64;

  explicit SmallNet(int layers = 3, Device device = kCPU)
      : HookedModule(""),
        first(add_parameter("first", random_tensor({kWidth}, 1).to(device))),
        last(add_parameter("last", random_tensor({kWidth}, 2).to(device))) {
    for (int i = 0; i < layers; ++i) {
      blocks.push_back(std::make_unique<Layer>("blocks." + std::to_string(i),
                                               random_tensor({kWidth, kWidth}, 10 + i).to(device),
                                               zeros({kWidth}, {DType::kF32, device})));
      add_parameters_of(*blocks.back());
    }
  }

  std::vector<HookedModule*> sequence() const {
    std::vector<HookedModule*> list;
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
  Tensor loss(int sample) const {
    return sum(forward(random_tensor({1, kWidth}, 100 + sample).to(first.device())));
  }

  Tensor first;
  Tensor last;
  std::vector<std::unique_ptr<Layer>> blocks;
};

inline std::vector<float> values_of(const Tensor& tensor) {
  const Tensor here = tensor.detach().to(kCPU).contiguous();
  return {here.data<float>(), here.data<float>() + here.numel()};
}

}  // namespace lockstep::dist
