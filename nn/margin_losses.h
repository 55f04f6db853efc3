#pragma once

#include "core/ops/loss/loss.h"
#include "nn/module.h"

namespace lockstep::nn {

// Losses that ask for a margin between scores or distances, as modules, with PyTorch's options and
// defaults. core/ops/loss/loss_margin.h documents them.

class MarginRankingLoss : public Module {
 public:
  explicit MarginRankingLoss(double margin = 0, Reduction reduction = Reduction::kMean)
      : margin_(margin), reduction_(reduction) {}
  Tensor forward(const Tensor& x1, const Tensor& x2, const Tensor& target) const;

 private:
  double margin_;
  Reduction reduction_;
};

class HingeEmbeddingLoss : public Module {
 public:
  explicit HingeEmbeddingLoss(double margin = 1, Reduction reduction = Reduction::kMean)
      : margin_(margin), reduction_(reduction) {}
  Tensor forward(const Tensor& x, const Tensor& target) const;

 private:
  double margin_;
  Reduction reduction_;
};

class CosineEmbeddingLoss : public Module {
 public:
  explicit CosineEmbeddingLoss(double margin = 0, Reduction reduction = Reduction::kMean)
      : margin_(margin), reduction_(reduction) {}
  Tensor forward(const Tensor& x1, const Tensor& x2, const Tensor& target) const;

 private:
  double margin_;
  Reduction reduction_;
};

class SoftMarginLoss : public Module {
 public:
  explicit SoftMarginLoss(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  Tensor forward(const Tensor& x, const Tensor& target) const;

 private:
  Reduction reduction_;
};

struct TripletMarginOptions {
  double margin = 1;
  double p = 2;       ///< of the norm
  double eps = 1e-6;  ///< added to each difference
  bool swap = false;  ///< takes the nearer of anchor and positive to the negative
  Reduction reduction = Reduction::kMean;
};

class TripletMarginLoss : public Module {
 public:
  explicit TripletMarginLoss(TripletMarginOptions options = {}) : options_(options) {}
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const;

 private:
  TripletMarginOptions options_;
};

struct MultiMarginOptions {
  int64_t p = 1;  ///< 1 or 2
  double margin = 1;
  Tensor weight = {};  ///< [classes]; undefined: all 1
  Reduction reduction = Reduction::kMean;
};

class MultiMarginLoss : public Module {
 public:
  explicit MultiMarginLoss(MultiMarginOptions options = {});
  Tensor forward(const Tensor& x, const Tensor& target) const;

  Tensor weight;  ///< a buffer

 private:
  MultiMarginOptions options_;
};

class MultiLabelMarginLoss : public Module {
 public:
  explicit MultiLabelMarginLoss(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  Tensor forward(const Tensor& x, const Tensor& target) const;

 private:
  Reduction reduction_;
};

}  // namespace lockstep::nn
