#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/ops/pointwise/pointwise.h"
#include "nn/module.h"
#include "tests/kernels/tensor_values.h"
#include "train/weights/state_file.h"

namespace lockstep::nn {

using Tensors = std::vector<Tensor>;

/// What PyTorch's module computed in one case of pytorch_reference.py, which describes the names.
class PytorchCase {
 public:
  explicit PytorchCase(const std::string& name) {
    static const StateDict file =
        train::load(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/nn/pytorch_reference.safetensors");
    for (const auto& [path, tensor] : file) {
      if (path.starts_with(name + "/")) tensors_.emplace(path.substr(name.size() + 1), tensor);
    }
  }

  bool empty() const { return tensors_.empty(); }

  /// The inputs; those of floating dtype are leaves.
  Tensors inputs() const {
    Tensors found;
    for (int i = 0; tensors_.contains("in." + std::to_string(i)); ++i) {
      const Tensor input = tensors_.at("in." + std::to_string(i)).clone();
      if (is_floating(input.dtype())) input.set_requires_grad();
      found.push_back(input);
    }
    return found;
  }

  /// Gives the module PyTorch's parameters and buffers, which must be exactly its own.
  void load(Module& module) const { module.load_state_dict(under("state.")); }

  /// Expects `outputs`, and after a backward the gradients of inputs and parameters, and the
  /// buffers.
  void expect_results(const Module& module, const Tensors& inputs, const Tensors& outputs) const {
    const StateDict wanted = under("out.");
    ASSERT_EQ(outputs.size(), wanted.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      expect_near(outputs[i], wanted.at(std::to_string(i)), kTolerance, kTolerance);
    }
    (outputs[0] * outputs[0]).sum().mul(tensor_of({0.5})).backward();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].requires_grad()) expect_gradient("grad.in." + std::to_string(i), inputs[i]);
    }
    for (const NamedParameter& parameter : module.named_parameters()) {
      expect_gradient("grad.state." + parameter.name, parameter.tensor);
    }
    const StateDict after = under("after.");
    for (const NamedParameter& buffer : module.named_buffers()) {
      SCOPED_TRACE(buffer.name);
      expect_near(buffer.tensor, after.at(buffer.name), kTolerance, kTolerance);
    }
  }

 private:
  static constexpr double kTolerance = 2e-5;

  StateDict under(const std::string& prefix) const {
    StateDict found;
    for (const auto& [name, tensor] : tensors_) {
      if (name.starts_with(prefix)) found.add(name.substr(prefix.size()), tensor);
    }
    return found;
  }

  void expect_gradient(const std::string& name, const Tensor& leaf) const {
    SCOPED_TRACE(name);
    const auto wanted = tensors_.find(name);
    ASSERT_EQ(leaf.grad().defined(), wanted != tensors_.end());
    if (leaf.grad().defined()) expect_near(leaf.grad(), wanted->second, kTolerance, kTolerance);
  }

  std::map<std::string, Tensor> tensors_;
};

/// Expects that `module`, called by `call` with the case's inputs, gives what PyTorch's gives, with
/// the same gradients.
template <class M, class Call>
void expect_like_pytorch(const std::string& name, M module, const Call& call,
                         bool training = true) {
  SCOPED_TRACE(name);
  const PytorchCase reference(name);
  ASSERT_FALSE(reference.empty());
  reference.load(module);
  module.train(training);
  const Tensors inputs = reference.inputs();
  const Tensors outputs = call(module, inputs);
  reference.expect_results(module, inputs, outputs);
}

/// Does so for a module that is called with the inputs as they are.
template <class M>
void expect_like_pytorch(const std::string& name, M module, bool training = true) {
  const auto call = [](M& m, const Tensors& in) -> Tensors {
    if constexpr (requires { m.forward(in[0]); }) {
      return {m.forward(in[0])};
    } else if constexpr (requires { m.forward(in[0], in[1]); }) {
      return {m.forward(in[0], in[1])};
    } else {
      return {m.forward(in[0], in[1], in[2])};
    }
  };
  expect_like_pytorch(name, std::move(module), call, training);
}

}  // namespace lockstep::nn
