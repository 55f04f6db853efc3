#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// What is done about a step whose loss or gradient norm is a spike; see configs/train.proto.
enum class SpikeAction : uint8_t { kKeep, kNote, kSkip, kRollback };

struct SpikeRule {
  SpikeAction action = SpikeAction::kKeep;
  double z = 6;          ///< standard deviations above the mean
  int64_t window = 128;  ///< steps
  int64_t limit = 3;     ///< spikes in a row that are left out

  /// Whether a spike updates nothing.
  bool leaves_out() const {
    return action == SpikeAction::kSkip || action == SpikeAction::kRollback;
  }
};
SpikeRule spike_rule_of(const config::RunConfig& config);

/// Numbers above these are a spike.
struct SpikeLimits {
  double loss = std::numeric_limits<double>::infinity();
  double grad_norm = std::numeric_limits<double>::infinity();
};

/// Spikes that followed each other. Going back to a checkpoint does not undo it.
struct SpikeRow {
  int64_t count = 0;
  int64_t furthest = -1;  ///< the latest step that was one
  friend bool operator==(const SpikeRow&, const SpikeRow&) = default;
};

/// What a SpikeWatch remembers: part of checkpoints.
struct SpikeMemory {
  std::vector<double> losses;  ///< of the window's steps, oldest first
  std::vector<double> grad_norms;
  SpikeRow row;
  friend bool operator==(const SpikeMemory&, const SpikeMemory&) = default;
};

/// Compares the numbers of each step with those of the steps before it. A function of these numbers
/// alone, so that ranks that give the same ones decide alike. Not thread-safe.
class SpikeWatch {
 public:
  SpikeWatch() = default;  ///< finds none
  explicit SpikeWatch(const SpikeRule& rule) : rule_(rule) {}

  const SpikeRule& rule() const { return rule_; }
  /// Those of the next step: mean and `z` population standard deviations of the window. Infinite
  /// while the window is not full, after `limit` spikes in a row, and where all numbers are equal.
  SpikeLimits limits() const;
  /// Takes in the numbers, both finite, of `step`; returns whether it is a spike. Those of a spike
  /// stay out of the window. A step after `limit` spikes in a row begins the window anew. A step
  /// that is none ends a row, unless it is a repetition, after a rollback, of one before the row.
  bool add(int64_t step, double loss, double grad_norm);
  /// "loss 9.131 is 8.2 deviations above the mean 3.214 of the last 128 steps"; call before `add`,
  /// of numbers that are a spike.
  std::string describe(double loss, double grad_norm) const;

  const SpikeMemory& memory() const { return memory_; }
  /// Goes on from what another remembered, of which the newest steps of the window count.
  void remember(SpikeMemory memory);
  void set_row(const SpikeRow& row) { memory_.row = row; }

 private:
  SpikeRule rule_;
  SpikeMemory memory_;
};

}  // namespace lockstep::train
