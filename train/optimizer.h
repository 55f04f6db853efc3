#pragma once

#include <memory>
#include <vector>

#include "nn/module.h"

namespace lockstep::train {

/// Changes parameters by their gradients. Weight decay is decoupled from the gradient for AdamW
/// and acts only on tensors of two or more dimensions: norms and biases are not decayed.
/// Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One step over all parameters in one pass. `gradients` in the parameters' order; each is
  /// multiplied by `grad_scale` as it is read and is left as it was.
  virtual void step(const std::vector<Tensor>& gradients, double learning_rate,
                    double grad_scale) = 0;
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

/// Loshchilov & Hutter 2019.
class AdamW final : public Optimizer {
 public:
  AdamW(std::vector<Tensor> parameters, AdamWOptions options);
  void step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale) override;

 private:
  AdamWOptions options_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> means_;
  std::vector<Tensor> squares_;
  std::vector<int64_t> decayed_;
  int64_t steps_ = 0;
};

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0.1;
};

/// Gradient descent with (Nesterov) momentum; its decay is added to the gradient.
class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<Tensor> parameters, SgdOptions options);
  void step(const std::vector<Tensor>& gradients, double learning_rate, double grad_scale) override;

 private:
  SgdOptions options_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> buffers_;
  std::vector<int64_t> decayed_;
};

}  // namespace lockstep::train
