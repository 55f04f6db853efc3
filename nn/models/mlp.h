#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/classifier.h"
#include "nn/layers.h"

namespace lockstep::nn {

enum class Activation : uint8_t {
  kRelu,  ///< max(x, 0)
  kGelu,  ///< x Phi(x), Phi the normal distribution function (Hendrycks & Gimpel 2016)
};

/// Shape of a multilayer perceptron: linear layers with an activation between them.
struct MlpOptions {
  int64_t inputs = 64;                         ///< elements of a sample
  std::vector<int64_t> hidden_widths = {128};  ///< empty: a linear classifier
  int64_t classes = 10;
  Activation activation = Activation::kRelu;
  /// Name of an operator to call instead of `activation`: its first argument is the layer's output,
  /// the others have defaults.
  std::string activation_operator = {};
};

/// Layers are named layers.0, layers.1, ... and initialised as PyTorch's linear layers.
class Mlp final : public Classifier {
 public:
  /// Throws DispatchError when the options name an operator that does not exist.
  explicit Mlp(const MlpOptions& options);

  Tensor forward(const Tensor& inputs) override;
  std::vector<Module*> sequence() const override { return modules_of(layers); }
  std::vector<int64_t> input_shape() const override { return {options_.inputs}; }
  int64_t classes() const override { return options_.classes; }
  double forward_flops() const override;

  std::vector<std::unique_ptr<Linear>> layers;

 private:
  Tensor run(const Tensor& inputs);
  Tensor activate(const Tensor& x) const;

  MlpOptions options_;
};

}  // namespace lockstep::nn
