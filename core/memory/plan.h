#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// A block's place in time: on loan from event `begin` until before event `end`.
struct BlockLifetime {
  size_t bytes = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

/// Where blocks lie in one arena, so that no two that are on loan at the same time overlap.
struct Packing {
  std::vector<size_t> offsets;  ///< in bytes, multiples of 512, one for each block
  size_t peak = 0;              ///< bytes of the arena
  size_t lower_bound = 0;       ///< the most bytes on loan at one moment: no packing needs less
};

/// Packs blocks, whose sizes count in multiples of 512 bytes, into a small arena: tries a few
/// orders, in each puts a block into the lowest or the tightest gap that is free for as long as it
/// lives, and keeps the best arena. Deterministic; 10,000 blocks take tens of milliseconds.
Packing pack_lifetimes(std::span<const BlockLifetime> blocks);

/// What one training step of a stream asked for, in order.
class StepRecording {
 public:
  static constexpr int32_t kMostRequests = 1 << 20;
  static constexpr int32_t kSurvived = -1;  ///< instead of an end: on loan when the step ended

  /// Notes a request and returns its index; -1 when the step has too many.
  int32_t allocate(size_t bytes);
  /// Notes that request `index` of this step was given back.
  void free(int32_t index);

  /// Requests, by index; begin and end count the calls above.
  const std::vector<BlockLifetime>& requests() const noexcept { return requests_; }
  bool is_complete() const noexcept { return requests_.size() < kMostRequests; }
  bool operator==(const StepRecording& other) const;

 private:
  std::vector<BlockLifetime> requests_;
  int32_t events_ = 0;
};

/// Places for the blocks that begin and end within a recorded step.
class MemoryPlan {
 public:
  static constexpr size_t kUnplanned = ~size_t{0};  ///< the place of a block that survived the step

  explicit MemoryPlan(StepRecording recording);

  int32_t requests() const noexcept { return static_cast<int32_t>(offsets_.size()); }
  size_t bytes(int32_t index) const {
    return recording_.requests()[static_cast<size_t>(index)].bytes;
  }
  size_t offset(int32_t index) const { return offsets_[static_cast<size_t>(index)]; }
  /// The blocks that had any of this one's bytes last before it.
  std::span<const int32_t> predecessors(int32_t index) const;

  size_t planned_peak() const noexcept { return planned_peak_; }
  /// The most bytes of planned blocks on loan at one moment.
  size_t lower_bound() const noexcept { return lower_bound_; }
  const StepRecording& recording() const noexcept { return recording_; }

 private:
  StepRecording recording_;
  std::vector<size_t> offsets_;
  std::vector<int32_t> predecessors_;      // of all, one after the other
  std::vector<size_t> first_predecessor_;  // of each, and the end
  size_t planned_peak_ = 0;
  size_t lower_bound_ = 0;
};

/// Serves the requests of one stream's steps from a plan, by index: the first whole step is
/// recorded and packed; later steps get its places as long as they ask for no more bytes, in the
/// same order, and have given back what the plan says. Where a step differs, the rest of it is
/// unplanned.
///
/// Steps go on being recorded: one that differs from the plan, and comes twice in a row, replaces
/// it. Not thread-safe.
class StepPlanner {
 public:
  /// What became of a request; keep it with the block and hand it to `free`.
  struct Ticket {
    int32_t index = -1;  ///< -1: not part of any step
    uint32_t step = 0;
    size_t offset = MemoryPlan::kUnplanned;  ///< in the arena; kUnplanned: serve it as ever
  };

  /// Ends the step before, if any, and begins the next. True when there is a new plan: then no
  /// block of the plan before is on loan, and the arena must have plan()->planned_peak() bytes.
  bool mark_step();
  /// The next request of the step, in bytes after rounding.
  Ticket allocate(size_t bytes);
  /// The block may serve its stream again.
  void free(const Ticket& ticket);
  /// Takes a place back, as when there is no memory for the arena: this request and the rest of the
  /// step are unplanned.
  void refuse(Ticket& ticket);
  /// As newly made. Planned blocks must not be on loan.
  void reset();

  /// Null before the first whole step.
  const MemoryPlan* plan() const noexcept { return has_plan_ ? &plan_ : nullptr; }
  /// Blocks on loan from the arena.
  int32_t live() const noexcept { return live_count_; }
  /// Whether this step has left the plan, so that what is free of the arena serves nobody before
  /// the next `mark_step`. True while there is no plan.
  bool diverged() const noexcept { return diverged_; }
  /// Steps that the plan served to their end.
  int64_t planned_steps() const noexcept { return planned_steps_; }

 private:
  bool is_free(int32_t index) const;
  bool adopt(StepRecording recording);

  MemoryPlan plan_{StepRecording{}};
  bool has_plan_ = false;
  bool diverged_ = true;  // until there is a plan
  bool in_step_ = false;
  uint32_t step_ = 0;
  StepRecording recording_;       // of this step
  StepRecording before_;          // the last step that was not the plan's
  std::vector<uint8_t> on_loan_;  // by index of the plan
  std::vector<int32_t> late_;     // on loan since before this step
  int32_t live_count_ = 0;
  int64_t planned_steps_ = 0;
};

}  // namespace lockstep
