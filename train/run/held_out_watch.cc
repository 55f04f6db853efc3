#include "train/run/held_out_watch.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep::train {

bool HeldOutWatch::add(int64_t step, double loss) {
  if (!memory_) {
    if (!std::isfinite(loss)) return false;
    memory_ = {.lowest = loss, .lowest_step = step, .reference = loss};
    return true;
  }
  const bool counts = loss < memory_->reference - rule_.min_delta;
  if (counts) memory_->reference = loss;
  memory_->since = counts ? 0 : memory_->since + 1;
  if (!(loss < memory_->lowest)) return false;
  memory_->lowest = loss;
  memory_->lowest_step = step;
  return true;
}

std::optional<int64_t> HeldOutWatch::best_step() const {
  if (!rule_.keep_best || !memory_) return std::nullopt;
  return memory_->lowest_step;
}

std::string HeldOutWatch::reason() const {
  const std::string by =
      rule_.min_delta > 0 ? fmt::format(" by more than {}", rule_.min_delta) : std::string();
  return fmt::format(
      "training ends: the held-out loss has not fallen{} for {} evaluations "
      "(train.early_stopping.patience); it was lowest, {:.4f}, after step {}",
      by, memory_->since, memory_->lowest, memory_->lowest_step);
}

}  // namespace lockstep::train
