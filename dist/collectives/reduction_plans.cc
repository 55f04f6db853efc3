#include <algorithm>

#include "dist/collectives/schedule_builder.h"

namespace lockstep::dist {

namespace {

using StepId = ScheduleBuilder::StepId;
using Memory = Slice::Memory;

// Messages to the reducing rank use one lane and results another, so that neither waits for the
// other.
constexpr int kToOwner = 0;
constexpr int kFromOwner = 1;

/// Sends this rank's sums of what lies at `slice` in each of them. Names the first message; the
/// others' names follow.
StepId send_sums(ScheduleBuilder& builder, int peer, Slice slice) {
  const StepId first = builder.send(peer, kToOwner, slice);
  for (int sum = 1; sum < builder.sums(builder.rank()); ++sum) {
    slice.offset += builder.input_stride();
    builder.send(peer, kToOwner, slice);
  }
  return first;
}

/// Orders `later`, which may write to the memory of the sums, after the sends of all of them.
void order_after_sums(ScheduleBuilder& builder, StepId first, StepId later) {
  for (int sum = 0; sum < builder.sums(builder.rank()); ++sum) {
    builder.order(first + static_cast<StepId>(sum), later);
  }
}

/// Receives the ranks' segments of one part and reduces them in the order of the layout. Scratch
/// memory holds a window of segments from each rank; a slot is reused when its segment is
/// reduced.
class PartReduction {
 public:
  /// Reduces into offset `output` of the output; this rank's own part is at offset `input` of its
  /// input.
  PartReduction(ScheduleBuilder& builder, const Segments& segments, uint64_t input, uint64_t output)
      : builder_(builder), segments_(segments), input_(input), output_(output) {
    const uint64_t window = static_cast<uint64_t>(std::max(builder.cut().window, 1));
    reduced_.resize(std::min(segments.count(), window));
    scratch_ = builder.scratch(reduced_.size() * received() * segments.room());
  }

  /// Adds the steps for a segment; segments must be added in order. Returns the reducing step.
  StepId add(uint64_t segment) {
    const uint64_t slot = segment % reduced_.size();
    const uint64_t bytes = segments_.size(segment);
    uint64_t at = slot * received();
    std::vector<uint64_t> places(static_cast<size_t>(builder_.size()));
    StepId first = 0;
    for (int i = 1; i < builder_.size(); ++i) {
      const int peer = builder_.after(i);
      places[static_cast<size_t>(peer)] = at;
      for (int sum = 0; sum < builder_.sums(peer); ++sum) {
        const StepId receive = builder_.receive(peer, kToOwner, place(at++, bytes));
        if (i == 1 && sum == 0) first = receive;
      }
    }
    for (const SumOrder::Term& term : builder_.order().terms) {
      const uint64_t received = places[static_cast<size_t>(term.rank)];
      builder_.add_source(term.rank == builder_.rank()
                              ? own(term.sum, segment)
                              : place(received + static_cast<uint64_t>(term.sum), bytes));
    }
    const StepId reduce =
        builder_.reduce({Memory::kOutput, output_ + segments_.offset(segment), bytes});
    for (StepId receive = builder_.size() > 1 ? first : reduce; receive < reduce; ++receive) {
      if (segment >= reduced_.size()) builder_.order(reduced_[slot], receive);
      builder_.order(receive, reduce);
    }
    return reduced_[slot] = reduce;
  }

 private:
  /// Number of segments received from other ranks for each one reduced.
  uint64_t received() const {
    return static_cast<uint64_t>(builder_.all_sums() - builder_.sums(builder_.rank()));
  }
  Slice place(uint64_t index, uint64_t bytes) const {
    return {Memory::kScratch, scratch_ + index * segments_.room(), bytes};
  }
  Slice own(int sum, uint64_t segment) const {
    return {
        Memory::kInput,
        input_ + static_cast<uint64_t>(sum) * builder_.input_stride() + segments_.offset(segment),
        segments_.size(segment)};
  }

  ScheduleBuilder& builder_;
  Segments segments_;
  uint64_t input_;
  uint64_t output_;
  uint64_t scratch_ = 0;
  std::vector<StepId> reduced_;  ///< by slot: the last step that reads it
};

/// Reserves room for the steps, sources and orders of reducing `segments` segments.
void reserve_reductions(ScheduleBuilder& builder, uint64_t segments) {
  const auto sums = static_cast<uint64_t>(builder.all_sums());
  builder.reserve(segments * (sums + 1), segments * sums, segments * 2 * sums);
}

void reduce_alone(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t bytes = bytes_of(operation);
  if (operation.reduction.op != ReduceOp::kPremultipliedSum && builder.all_sums() == 1) {
    return builder.copy({Memory::kOutput, 0, bytes}, {Memory::kInput, 0, bytes});
  }
  const Segments segments = builder.segments(bytes);
  PartReduction reduction(builder, segments, 0, 0);
  for (uint64_t k = 0; k < segments.count(); ++k) reduction.add(k);
}

/// Every rank sends its sums to all others, and each reduces: the fewest rounds for small tensors.
void reduce_everywhere(ScheduleBuilder& builder, const Segments& segment) {
  reserve_reductions(builder, 2);
  std::vector<StepId> sent;
  for (int i = 1; i < builder.size(); ++i) {
    sent.push_back(send_sums(builder, builder.after(i), {Memory::kInput, 0, segment.size(0)}));
  }
  const StepId reduce = PartReduction(builder, segment, 0, 0).add(0);
  for (const StepId first : sent) order_after_sums(builder, first, reduce);
}

}  // namespace

void plan_all_reduce(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t bytes = bytes_of(operation);
  const int size = builder.size();
  if (bytes == 0) return;
  if (size == 1) return reduce_alone(builder, operation);
  const Segments whole = builder.segments(bytes);
  if (whole.count() == 1 && bytes <= builder.cut().small_bytes) {
    return reduce_everywhere(builder, whole);
  }

  const Parts parts(bytes, size);
  std::vector<Segments> segments;
  for (int rank = 0; rank < size; ++rank) {
    segments.push_back(builder.segments(parts.size(rank)));
  }
  const uint64_t rounds = segments[0].count();  // no part is larger
  reserve_reductions(builder, 3 * rounds);

  const auto slice = [&](Memory memory, int part, uint64_t segment) {
    return Slice{memory, parts.offset(part) + segments[part].offset(segment),
                 segments[part].size(segment)};
  };
  const int own = builder.rank();
  PartReduction reduction(builder, segments[own], parts.offset(own), parts.offset(own));
  std::vector<StepId> sent(size);
  for (uint64_t k = 0; k < rounds; ++k) {
    for (int i = 1; i < size; ++i) {
      const int peer = builder.after(i);
      if (k >= segments[peer].count()) continue;
      sent[peer] = send_sums(builder, peer, slice(Memory::kInput, peer, k));
    }
    if (k < segments[own].count()) {
      const StepId reduced = reduction.add(k);
      for (int i = 1; i < size; ++i) {
        const int peer = builder.after(i);
        builder.order(reduced, builder.send(peer, kFromOwner, slice(Memory::kOutput, own, k)));
      }
    }
    for (int i = 1; i < size; ++i) {
      const int peer = builder.after(i);
      if (k >= segments[peer].count()) continue;
      order_after_sums(builder, sent[peer],
                       builder.receive(peer, kFromOwner, slice(Memory::kOutput, peer, k)));
    }
  }
}

void plan_reduce_scatter(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t part = bytes_of(operation);
  if (part == 0) return;
  if (builder.size() == 1) return reduce_alone(builder, operation);
  const Segments segments = builder.segments(part);
  reserve_reductions(builder, 2 * segments.count());
  PartReduction reduction(builder, segments, static_cast<uint64_t>(builder.rank()) * part, 0);
  for (uint64_t k = 0; k < segments.count(); ++k) {
    for (int i = 1; i < builder.size(); ++i) {
      const int peer = builder.after(i);
      const uint64_t offset = static_cast<uint64_t>(peer) * part + segments.offset(k);
      send_sums(builder, peer, {Memory::kInput, offset, segments.size(k)});
    }
    reduction.add(k);
  }
}

void plan_reduce(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t bytes = bytes_of(operation);
  if (bytes == 0) return;
  if (builder.size() == 1) return reduce_alone(builder, operation);
  const Segments segments = builder.segments(bytes);
  if (builder.rank() != operation.root) {
    for (uint64_t k = 0; k < segments.count(); ++k) {
      send_sums(builder, operation.root, {Memory::kInput, segments.offset(k), segments.size(k)});
    }
    return;
  }
  reserve_reductions(builder, segments.count());
  PartReduction reduction(builder, segments, 0, 0);
  for (uint64_t k = 0; k < segments.count(); ++k) reduction.add(k);
}

}  // namespace lockstep::dist
