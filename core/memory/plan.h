#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Lifetime of a block: live from event `begin` until before event `end`.
struct BlockLifetime {
  size_t bytes = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

/// Offsets of blocks in one arena, such that no two that are live at the same time overlap.
struct Packing {
  std::vector<size_t> offsets;  ///< in bytes, multiples of 512, one for each block
  size_t peak = 0;              ///< size of the arena in bytes
  size_t lower_bound = 0;       ///< the most bytes live at one moment: no packing needs less
};

/// Packs blocks, whose sizes are rounded up to multiples of 512 bytes, into a small arena. Tries a
/// few orders; in each, a block goes to the lowest or the tightest gap that is free for its
/// lifetime; keeps the smallest arena. Deterministic; 10,000 blocks take tens of milliseconds.
Packing pack_lifetimes(std::span<const BlockLifetime> blocks);

/// The requests of one training step on a stream, in order.
class StepRecording {
 public:
  static constexpr int32_t kMostRequests = 1 << 20;  ///< longer steps are not planned
  static constexpr int32_t kSurvived = -1;           ///< value of `end`: live when the step ended

  /// Records a request and returns its index; -1 if the step has too many.
  int32_t allocate(size_t bytes);
  /// Records that request `index` of this step was freed.
  void free(int32_t index);

  /// Requests, by index; begin and end number the calls above.
  const std::vector<BlockLifetime>& requests() const noexcept { return requests_; }
  bool is_complete() const noexcept { return requests_.size() < kMostRequests; }
  bool operator==(const StepRecording& other) const;

 private:
  std::vector<BlockLifetime> requests_;
  int32_t events_ = 0;
};

/// Places for the blocks that are allocated and freed within a recorded step.
class MemoryPlan {
 public:
  static constexpr size_t kUnplanned = ~size_t{0};  ///< offset of a block that outlived the step

  explicit MemoryPlan(StepRecording recording);

  int32_t requests() const noexcept { return static_cast<int32_t>(offsets_.size()); }
  size_t bytes(int32_t index) const {
    return recording_.requests()[static_cast<size_t>(index)].bytes;
  }
  size_t offset(int32_t index) const { return offsets_[static_cast<size_t>(index)]; }
  /// The blocks that owned any of this block's bytes directly before it.
  std::span<const int32_t> predecessors(int32_t index) const;

  size_t planned_peak() const noexcept { return planned_peak_; }
  /// The most bytes of planned blocks live at one moment.
  size_t lower_bound() const noexcept { return lower_bound_; }

 private:
  StepRecording recording_;
  std::vector<size_t> offsets_;
  std::vector<int32_t> predecessors_;      // of all blocks, concatenated
  std::vector<size_t> first_predecessor_;  // index of each block's first predecessor, and the end
  size_t planned_peak_ = 0;
  size_t lower_bound_ = 0;
};

/// Serves the requests of one stream's steps from a plan, by index. The first whole step is
/// recorded and packed. Later steps get its places as long as each request is no larger than the
/// recorded one and the frees so far make its place available. After the first mismatch, the rest
/// of the step is unplanned.
///
/// Recording continues: a step that differs from the plan and occurs twice in a row replaces it.
/// Not thread-safe.
class StepPlanner {
 public:
  /// The planner's answer to a request; keep it with the block and pass it to `free`.
  struct Ticket {
    int32_t index = -1;  ///< -1: not part of any step
    uint32_t step = 0;
    size_t offset = MemoryPlan::kUnplanned;  ///< in the arena; kUnplanned: allocate as usual
  };

  /// Ends the current step, if any, and begins the next. Returns true if there is a new plan: then
  /// no block of the old plan is live, and the arena must have plan()->planned_peak() bytes.
  bool mark_step();
  /// Handles the next request of the step, in bytes after rounding.
  Ticket allocate(size_t bytes);
  /// Call when the block may be reused on its stream.
  void free(const Ticket& ticket);
  /// Cancels a place, for example if there is no memory for the arena: this request and the rest of
  /// the step are unplanned.
  void refuse(Ticket& ticket);

  /// The plan; null before the first whole step has ended.
  const MemoryPlan* plan() const noexcept { return has_plan_ ? &plan_ : nullptr; }
  /// Number of live blocks in the arena.
  int32_t live() const noexcept { return live_count_; }
  /// Whether this step has left the plan; the free part of the arena is then unused until the next
  /// `mark_step`. True while there is no plan.
  bool diverged() const noexcept { return diverged_; }
  /// Number of steps that the plan served completely.
  int64_t planned_steps() const noexcept { return planned_steps_; }

 private:
  bool is_free(int32_t index) const;
  bool adopt(StepRecording recording);

  MemoryPlan plan_{StepRecording{}};
  bool has_plan_ = false;
  bool diverged_ = true;  // until there is a plan
  bool in_step_ = false;
  uint32_t step_ = 0;
  StepRecording recording_;       // current step
  StepRecording before_;          // last step that did not follow the plan
  std::vector<uint8_t> on_loan_;  // nonzero: live, by index of the plan
  std::vector<int32_t> late_;     // live since before this step
  int32_t live_count_ = 0;
  int64_t planned_steps_ = 0;
};

}  // namespace lockstep
