#pragma once

#include <cstdint>

#include "core/ops/loss/loss.h"
#include "nn/module.h"

namespace lockstep::nn {

// Losses as modules, with PyTorch's options and defaults. core/ops/loss/loss.h documents shapes,
// reductions and errors of those whose functions it has.

struct CrossEntropyOptions {
  Tensor weight = {};  ///< [classes]; undefined: all 1
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::kMean;
  double label_smoothing = 0;
};

class CrossEntropyLoss : public Module {
 public:
  explicit CrossEntropyLoss(CrossEntropyOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;

  Tensor weight;  ///< a buffer

 private:
  CrossEntropyOptions options_;
};

struct NLLOptions {
  Tensor weight = {};  ///< [classes]; undefined: all 1
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::kMean;
};

class NLLLoss : public Module {
 public:
  explicit NLLLoss(NLLOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;

  Tensor weight;  ///< a buffer

 private:
  NLLOptions options_;
};

class MSELoss : public Module {
 public:
  explicit MSELoss(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

class L1Loss : public Module {
 public:
  explicit L1Loss(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

class SmoothL1Loss : public Module {
 public:
  explicit SmoothL1Loss(Reduction reduction = Reduction::kMean, double beta = 1)
      : reduction_(reduction), beta_(beta) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
  double beta_;
};

class HuberLoss : public Module {
 public:
  explicit HuberLoss(Reduction reduction = Reduction::kMean, double delta = 1)
      : reduction_(reduction), delta_(delta) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
  double delta_;
};

struct BCEWithLogitsOptions {
  Tensor weight = {};  ///< broadcasts to the target; undefined: all 1
  Reduction reduction = Reduction::kMean;
  Tensor pos_weight = {};  ///< of positive targets, broadcasts to them; undefined: all 1
};

class BCEWithLogitsLoss : public Module {
 public:
  explicit BCEWithLogitsLoss(BCEWithLogitsOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;

  Tensor weight;  ///< a buffer, as is pos_weight
  Tensor pos_weight;

 private:
  Reduction reduction_;
};

struct BCEOptions {
  Tensor weight = {};  ///< broadcasts to the target; undefined: all 1
  Reduction reduction = Reduction::kMean;
};

/// Takes probabilities (core/ops/loss/loss_likelihood.h); BCEWithLogitsLoss is more precise.
class BCELoss : public Module {
 public:
  explicit BCELoss(BCEOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;

  Tensor weight;  ///< a buffer

 private:
  Reduction reduction_;
};

struct KLDivOptions {
  Reduction reduction = Reduction::kMean;
  /// The sum divided by the size of the batch, dimension 0: what the divergence is defined as.
  bool batch_mean = false;
  bool log_target = false;
};

class KLDivLoss : public Module {
 public:
  explicit KLDivLoss(KLDivOptions options = {}) : options_(options) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  KLDivOptions options_;
};

struct PoissonNLLOptions {
  bool log_input = true;  ///< the input is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of log(target!) where target > 1
  double eps = 1e-8;      ///< added to a rate before its logarithm is taken
  Reduction reduction = Reduction::kMean;
};

/// poisson_nll_loss (core/ops/loss/loss_likelihood.h).
class PoissonNLLLoss : public Module {
 public:
  explicit PoissonNLLLoss(PoissonNLLOptions options = {}) : options_(options) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  PoissonNLLOptions options_;
};

struct GaussianNLLOptions {
  bool full = false;  ///< adds log(2 pi) / 2
  double eps = 1e-6;  ///< the least variance
  Reduction reduction = Reduction::kMean;
};

/// (log(var) + (input - target)^2 / var) / 2 for var of input's shape or broadcast to it. The
/// gradient of a variance below eps is what it would be at eps.
class GaussianNLLLoss : public Module {
 public:
  explicit GaussianNLLLoss(GaussianNLLOptions options = {}) : options_(options) {}
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var) const;

 private:
  GaussianNLLOptions options_;
};

struct CTCOptions {
  int64_t blank = 0;
  Reduction reduction = Reduction::kMean;
  bool zero_infinity = false;  ///< losses that are infinite count as 0
};

/// ctc_loss (core/ops/loss/ctc_loss.h), which documents shapes.
class CTCLoss : public Module {
 public:
  explicit CTCLoss(CTCOptions options = {}) : options_(options) {}
  Tensor forward(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                 IntList target_lengths) const;

 private:
  CTCOptions options_;
};

}  // namespace lockstep::nn
