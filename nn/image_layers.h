#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "nn/module.h"

namespace lockstep::nn {

/// Options of a 2d convolution; height and width have the same stride and padding.
struct Conv2dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = false;
};

/// Convolution (core/ops/conv/conv.h) of x [batch, in, height, width] with a square kernel, W [out,
/// in / groups, kernel, kernel]. W is initialised normal with standard deviation sqrt(2 / (out
/// kernel^2)), which preserves the scale of gradients through ReLUs (He et al. 2015), the bias 0.
class Conv2d : public Module {
 public:
  Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {});
  Tensor forward(const Tensor& x) const;

  Tensor weight;
  Tensor bias;  ///< undefined when there is none

 private:
  Conv2dOptions options_;
};

/// A function that replaces batch_norm in training and has its arguments
/// (core/ops/norm/batch_norm.h). It updates the running statistics, f32 or f64, in place.
using TrainingNorm = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                          const Tensor& running_mean, const Tensor& running_var,
                                          double momentum, double epsilon)>;

/// Batch norm (core/ops/norm/batch_norm.h) of x [batch, width, height, width]. Initialised with
/// weight 1, bias 0. In training every forward pass (micro-batch) updates the running statistics,
/// except a pass recomputed for backward. If there is a StatisticsLog (nn/statistics_log.h) the
/// running statistics do not change, and the log gets the statistics of the batch.
class BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(int64_t width, double epsilon = 1e-5, double momentum = 0.1);
  Tensor forward(const Tensor& x) const;
  /// Uses `norm` instead of batch_norm in training; an empty function restores batch_norm. `norm`
  /// is assumed to compute the statistics over all ranks, so the running ones are updated at once
  /// and nothing is written to a StatisticsLog.
  void set_training_norm(TrainingNorm norm) { training_norm_ = std::move(norm); }

  Tensor weight;
  Tensor bias;
  // Buffers.
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;  ///< int64, 0-d

 private:
  Tensor run(const Tensor& x) const;
  Tensor normalise(const Tensor& x, const Tensor& mean, const Tensor& var) const;
  Tensor forward_logged(const Tensor& x, StatisticsLog& log) const;

  double epsilon_;
  double momentum_;
  TrainingNorm training_norm_;
};

}  // namespace lockstep::nn
