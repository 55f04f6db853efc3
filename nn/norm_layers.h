#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "nn/module.h"

namespace lockstep::nn {

/// A function that replaces batch_norm in training and has its arguments
/// (core/ops/norm/batch_norm.h). It updates the running statistics, f32 or f64, in place.
using TrainingNorm = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                          const Tensor& running_mean, const Tensor& running_var,
                                          double momentum, double epsilon)>;

/// Options of a batch norm, with PyTorch's defaults.
struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;  ///< weight, initialised with 1, and bias, 0
  /// Whether there are running statistics; without them evaluation uses those of the batch, too.
  bool track_running_stats = true;
};

/// Batch norm (core/ops/norm/batch_norm.h) over channels, dimension 1 of x; what batch norms of
/// inputs of any rank have in common. In training every forward pass (micro-batch) updates the
/// running statistics, except a pass recomputed for backward. If there is a StatisticsLog
/// (nn/statistics_log.h) the running statistics do not change, and the log gets the statistics of
/// the batch.
class BatchNorm : public Module {
 public:
  /// Throws ShapeError for an input of another rank.
  Tensor forward(const Tensor& x) const;
  /// Uses `norm` instead of batch_norm in training; an empty function restores batch_norm. `norm`
  /// is assumed to compute the statistics over all ranks, so the running ones are updated at once
  /// and nothing is written to a StatisticsLog.
  void set_training_norm(TrainingNorm norm) { training_norm_ = std::move(norm); }

  Tensor weight;  ///< [width]; this and `bias` are undefined without `affine`
  Tensor bias;
  // Buffers, undefined without `track_running_stats`.
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;  ///< int64, 0-d

 protected:
  /// For inputs of `least` to `most` dimensions.
  BatchNorm(int64_t width, BatchNormOptions options, int64_t least, int64_t most);
  BatchNorm(BatchNorm&&) noexcept = default;

 private:
  Tensor run(const Tensor& x) const;
  Tensor normalise(const Tensor& x, const Tensor& mean, const Tensor& var) const;
  Tensor forward_logged(const Tensor& x, StatisticsLog& log) const;

  BatchNormOptions options_;
  int64_t least_;
  int64_t most_;
  TrainingNorm training_norm_;
};

/// x [batch, width] or [batch, width, length].
class BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(int64_t width, BatchNormOptions options = {})
      : BatchNorm(width, options, 2, 3) {}
};

/// x [batch, width, height, width].
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(int64_t width, double epsilon = 1e-5, double momentum = 0.1)
      : BatchNorm(width, {.eps = epsilon, .momentum = momentum}, 4, 4) {}
  BatchNorm2d(int64_t width, BatchNormOptions options) : BatchNorm(width, options, 4, 4) {}
};

/// x [batch, width, depth, height, width].
class BatchNorm3d : public BatchNorm {
 public:
  explicit BatchNorm3d(int64_t width, BatchNormOptions options = {})
      : BatchNorm(width, options, 5, 5) {}
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< weight, initialised with 1, and bias, 0
};

/// Group norm (core/ops/norm/norm.h) of x [batch, channels, ...] in `groups` groups of channels.
class GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, GroupNormOptions options = {});
  Tensor forward(const Tensor& x) const;

  Tensor weight;  ///< [channels]; this and `bias` are undefined without `affine`
  Tensor bias;

 private:
  int64_t groups_;
  double eps_;
};

/// Options of an instance norm, with PyTorch's defaults.
struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  /// Keeps running statistics, averaged over samples, and uses them in evaluation.
  bool track_running_stats = false;
};

/// Instance norm: normalises each channel of each sample over its positions (Ulyanov et al. 2016).
/// x [batch, width, spatial...], the batch optional; what instance norms over any number of
/// dimensions have in common. A pass recomputed for backward does not update the running
/// statistics.
class InstanceNorm : public Module {
 public:
  Tensor forward(const Tensor& x) const;

  Tensor weight;  ///< [width]; this and `bias` are undefined without `affine`
  Tensor bias;
  // Buffers, undefined without `track_running_stats`.
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;  ///< int64, 0-d; stays 0, as PyTorch's does

 protected:
  InstanceNorm(int64_t width, InstanceNormOptions options, int64_t spatial);
  InstanceNorm(InstanceNorm&&) noexcept = default;

 private:
  Tensor run(const Tensor& x) const;
  Tensor run_tracked(const Tensor& x) const;

  int64_t width_;
  InstanceNormOptions options_;
  int64_t spatial_;
};

class InstanceNorm1d : public InstanceNorm {
 public:
  explicit InstanceNorm1d(int64_t width, InstanceNormOptions options = {})
      : InstanceNorm(width, options, 1) {}
};

class InstanceNorm2d : public InstanceNorm {
 public:
  explicit InstanceNorm2d(int64_t width, InstanceNormOptions options = {})
      : InstanceNorm(width, options, 2) {}
};

class InstanceNorm3d : public InstanceNorm {
 public:
  explicit InstanceNorm3d(int64_t width, InstanceNormOptions options = {})
      : InstanceNorm(width, options, 3) {}
};

}  // namespace lockstep::nn
