#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "dist/collectives/schedule_builder.h"

namespace lockstep::dist {

/// Scratch memory for a sequence of items, of which each takes the place of an earlier one when
/// that has been read. An item is a number of segments of equal size.
class SegmentRing {
 public:
  using StepId = ScheduleBuilder::StepId;

  /// For `items` items of `segments` segments of up to `segment_bytes` bytes. There is room for a
  /// window of the largest segments, or for as many smaller ones as take no more memory.
  SegmentRing(ScheduleBuilder& builder, uint64_t items, uint64_t segments, uint64_t segment_bytes)
      : builder_(builder), segments_(segments), segment_bytes_(segment_bytes) {
    const auto window = static_cast<uint64_t>(std::max(builder.cut().window, 1));
    const uint64_t room =
        window * builder.cut().segment_bytes / std::max<uint64_t>(segment_bytes, 1);
    readers_.resize(std::min(items, std::max(window, room)));
    scratch_ = builder.scratch(readers_.size() * segments * segment_bytes);
  }

  /// Begins the next item.
  void next() {
    slot_ = begun_++ % readers_.size();
    earlier_ = std::exchange(readers_[slot_], {});
  }
  /// The first `bytes` bytes of a segment of the item.
  Slice segment(uint64_t index, uint64_t bytes) const {
    const uint64_t place = slot_ * segments_ + index;
    return {Slice::Memory::kScratch, scratch_ + place * segment_bytes_, bytes};
  }
  /// Notes that a step writes a segment of the item.
  void written_by(StepId step) {
    for (const StepId reader : earlier_) builder_.order(reader, step);
  }
  /// Notes that a step reads the item.
  void read_by(StepId step) { readers_[slot_].push_back(step); }

 private:
  ScheduleBuilder& builder_;
  uint64_t segments_;
  uint64_t segment_bytes_;
  uint64_t scratch_ = 0;
  uint64_t begun_ = 0;
  uint64_t slot_ = 0;
  std::vector<std::vector<StepId>> readers_;  ///< by slot: of the item that is there
  std::vector<StepId> earlier_;               ///< of the item that was in this one's place
};

}  // namespace lockstep::dist
