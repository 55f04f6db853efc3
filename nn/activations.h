#pragma once

#include <cstdint>
#include <string>

#include "nn/module.h"

namespace lockstep::nn {

// Activations as modules, for Sequential: each calls the operator of its name, which documents it
// (core/ops/pointwise/pointwise.h, pointwise_piecewise.h; core/ops/loss/loss.h for softmax).
// Options and defaults are PyTorch's.

class ReLU : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class ReLU6 : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : negative_slope_(negative_slope) {}
  Tensor forward(const Tensor& x) const;

 private:
  double negative_slope_;
};

/// Leaky ReLU with a learned slope: one, or one for each channel (dimension 1).
class PReLU : public Module {
 public:
  explicit PReLU(int64_t slopes = 1, double init = 0.25);
  Tensor forward(const Tensor& x) const;

  Tensor weight;  ///< [slopes]
};

class ELU : public Module {
 public:
  explicit ELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& x) const;

 private:
  double alpha_;
};

class CELU : public Module {
 public:
  explicit CELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& x) const;

 private:
  double alpha_;
};

class SELU : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class GELU : public Module {
 public:
  /// `approximate` is "none" or "tanh".
  explicit GELU(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Tensor forward(const Tensor& x) const;

 private:
  std::string approximate_;
};

class SiLU : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class Mish : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class Tanh : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

/// x - tanh(x).
class Tanhshrink : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class Sigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class LogSigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class Softplus : public Module {
 public:
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& x) const;

 private:
  double beta_;
  double threshold_;
};

/// x / (1 + |x|).
class Softsign : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class Softshrink : public Module {
 public:
  explicit Softshrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor forward(const Tensor& x) const;

 private:
  double lambd_;
};

class Hardshrink : public Module {
 public:
  explicit Hardshrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor forward(const Tensor& x) const;

 private:
  double lambd_;
};

class Hardtanh : public Module {
 public:
  explicit Hardtanh(double min_val = -1, double max_val = 1)
      : min_val_(min_val), max_val_(max_val) {}
  Tensor forward(const Tensor& x) const;

 private:
  double min_val_;
  double max_val_;
};

class Hardsigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

class Hardswish : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

/// x above `threshold`, else `value`.
class Threshold : public Module {
 public:
  Threshold(double threshold, double value) : threshold_(threshold), value_(value) {}
  Tensor forward(const Tensor& x) const;

 private:
  double threshold_;
  double value_;
};

/// a * sigmoid(b) for the halves a and b of x along `dim`.
class GLU : public Module {
 public:
  explicit GLU(int64_t dim = -1) : dim_(dim) {}
  Tensor forward(const Tensor& x) const;

 private:
  int64_t dim_;
};

class Softmax : public Module {
 public:
  explicit Softmax(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) const;

 private:
  int64_t dim_;
};

/// softmax(-x).
class Softmin : public Module {
 public:
  explicit Softmin(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) const;

 private:
  int64_t dim_;
};

class LogSoftmax : public Module {
 public:
  explicit LogSoftmax(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) const;

 private:
  int64_t dim_;
};

}  // namespace lockstep::nn
