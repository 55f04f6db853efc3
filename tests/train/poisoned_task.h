#pragma once

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/train/forwarding_task.h"

namespace lockstep::train {

/// Makes the loss, or only its gradient, NaN in one batch.
class PoisonedTask final : public ForwardingTask {
 public:
  PoisonedTask(std::unique_ptr<Task> task, int64_t bad_batch, bool only_gradient = false)
      : ForwardingTask(std::move(task)), bad_batch_(bad_batch), only_gradient_(only_gradient) {}

  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    // Counts a batch once, as a step that is not finite is computed again.
    if (batches.empty() || batches.back() != batch) batches.push_back(batch);
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    if (batch != bad_batch_) return loss;
    if (only_gradient_) {
      loss.sum = loss.sum + sum(sqrt(model().parameters()[0] * 0));  // infinite gradient
    } else {
      loss.sum = loss.sum * std::numeric_limits<double>::quiet_NaN();
    }
    return loss;
  }

  std::vector<int64_t> batches;  ///< those that were computed

 private:
  int64_t bad_batch_;
  bool only_gradient_;
};

}  // namespace lockstep::train
