#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor/generator.h"
#include "dist/group/work.h"
#include "train/host_number.h"
#include "train/optimizer/read_back.h"
#include "train/step_result.h"
#include "train/watch/audit.h"

namespace lockstep::train {

/// A step from its beginning until its result is there.
struct StepInFlight {
  StepResult result;
  int64_t batch = 0;
  int64_t own_targets = 0;  ///< of this rank's micro-batches so far
  Tensor losses;            ///< f64, on the device: of each micro-batch of all ranks, then `stop`
  Tensor targets;           ///< f64 on the cpu: their number, then votes for CapturedStep
  dist::Work targets_sum;   ///< over the ranks
  ReadBack numbers;         ///< loss, norm, stop, updates; the loss scale where there is one
  // What it has changed besides gradients, as it was before.
  std::vector<Tensor> running_statistics;
  RandomKey random_state;
  std::exception_ptr failure;  ///< what it threw when it was begun ahead
  std::optional<Audit> audit;  ///< where one is due
  // On the audited rank, of the micro-batch in question.
  std::unique_ptr<GradientHashes> audited_gradients;
  Tensor audited_loss;
};

/// A step that has begun and not been closed.
struct OpenStep {
  RandomKey random_state;    ///< before it
  bool has_changed = false;  ///< whether weights, their optimizer or running statistics may have
};

/// What a step comes to over all ranks; tensors are on the device.
struct StepSums {
  HostNumber mean;                  ///< one by the number of targets: makes a mean of a sum
  HostNumber gradient_mean;         ///< as `mean`, of the gradients that this rank updates by
  HostNumber rate;                  ///< the learning rate; not with early updates
  HostNumber most_loss, most_norm;  ///< SpikeLimits
  Tensor norm_of_sums;              ///< of the gradients' sums, without the loss scale
  Tensor loss, norm;                ///< means; the norm before clipping, without the loss scale
  Tensor clip;                      ///< DeviceScalars::grad_factor; undefined without a limit
  Tensor norm_of_all;  ///< as `norm`; with local steps, the root mean square over the ranks
  Tensor stop;         ///< above 0 where a rank was asked to stop
  Tensor loss_scale;   ///< undefined where there is none
  Tensor told;         ///< StepInFlight::numbers on the device; undefined: see told_of
};

}  // namespace lockstep::train
