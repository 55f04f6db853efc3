#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "nn/module.h"

namespace lockstep::nn {

/// How a convolution moves over an image; the same for height and width.
struct Conv2dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = false;
};

/// Convolution (core/ops/conv/conv.h) of x [batch, in, height, width] with a square kernel, W [out,
/// in / groups, kernel, kernel]. W starts normal with deviation sqrt(2 / (out kernel^2)), which
/// keeps the size of gradients through ReLUs (He et al. 2015), the bias at zero.
class Conv2d : public Module {
 public:
  Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {});
  Tensor forward(const Tensor& x) const;

  Tensor weight;
  Tensor bias;  ///< undefined when there is none

 private:
  Conv2dOptions options_;
};

/// What batch norm does in training, with the arguments of batch_norm (core/ops/norm/batch_norm.h):
/// moves the running statistics, f32 or f64, in place.
using TrainingNorm = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                          const Tensor& running_mean, const Tensor& running_var,
                                          double momentum, double epsilon)>;

/// Batch norm (core/ops/norm/batch_norm.h) of x [batch, width, height, width]. Starts as weight 1,
/// bias 0. In training every forward pass moves the running statistics, once for each micro-batch;
/// one that is computed again for a backward does not. Where there is a StatisticsLog
/// (nn/statistics_log.h) they are left as they are, and it gets what the pass found.
class BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(int64_t width, double epsilon = 1e-5, double momentum = 0.1);
  Tensor forward(const Tensor& x) const;
  /// Normalises in training from now on. The statistics that it finds are taken to be those of all
  /// ranks: the running ones move with them at once, and no StatisticsLog is told. Empty:
  /// batch_norm again.
  void set_training_norm(TrainingNorm norm) { training_norm_ = std::move(norm); }

  Tensor weight;
  Tensor bias;
  // Buffers.
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;  ///< int64, 0-d

 private:
  Tensor normalise(const Tensor& x, const Tensor& mean, const Tensor& var) const;
  Tensor forward_logged(const Tensor& x, StatisticsLog& log) const;

  double epsilon_;
  double momentum_;
  TrainingNorm training_norm_;
};

}  // namespace lockstep::nn
