#include <algorithm>

#include "dist/schedule_builder.h"

namespace lockstep::dist {

namespace {

using StepId = ScheduleBuilder::StepId;
using Memory = Slice::Memory;

// All messages to who reduces are in one lane, all results in another: the two flow side by side.
constexpr int kToOwner = 0;
constexpr int kFromOwner = 1;

uint64_t bytes_of(const Operation& operation) {
  return static_cast<uint64_t>(operation.count) * size_of(operation.dtype);
}

/// Collects the ranks' segments of one part and reduces them in the order of ranks. Scratch memory
/// has room for a window of segments from each; the one after waits until the first is reduced.
class PartReduction {
 public:
  /// Of what lies at `input` of this rank's input, into its output at `output`.
  PartReduction(ScheduleBuilder& builder, const Segments& segments, uint64_t input, uint64_t output)
      : builder_(builder), segments_(segments), input_(input), output_(output) {
    const uint64_t window = static_cast<uint64_t>(std::max(builder.cut().window, 1));
    reduced_.resize(std::min(segments.count(), window));
    scratch_ = builder.scratch(reduced_.size() * others() * segments.room());
  }

  /// Of the segments in order. Names the step that reduces it.
  StepId add(uint64_t segment) {
    const uint64_t slot = segment % reduced_.size();
    const uint64_t bytes = segments_.size(segment);
    const StepId first = builder_.receive(builder_.after(1), kToOwner, place(slot, 1, bytes));
    for (int i = 2; i < builder_.size(); ++i) {
      builder_.receive(builder_.after(i), kToOwner, place(slot, i, bytes));
    }
    for (int source = 0; source < builder_.size(); ++source) {
      const int i = (source - builder_.rank() + builder_.size()) % builder_.size();
      builder_.add_source(i == 0 ? Slice{Memory::kInput, input_ + segments_.offset(segment), bytes}
                                 : place(slot, i, bytes));
    }
    const StepId reduce =
        builder_.reduce({Memory::kOutput, output_ + segments_.offset(segment), bytes});
    for (StepId receive = first; receive < reduce; ++receive) {
      if (segment >= reduced_.size()) builder_.order(reduced_[slot], receive);
      builder_.order(receive, reduce);
    }
    return reduced_[slot] = reduce;
  }

 private:
  uint64_t others() const { return static_cast<uint64_t>(builder_.size() - 1); }
  /// Of the `i`th rank after this one.
  Slice place(uint64_t slot, int i, uint64_t bytes) const {
    const uint64_t index = slot * others() + static_cast<uint64_t>(i - 1);
    return {Memory::kScratch, scratch_ + index * segments_.room(), bytes};
  }

  ScheduleBuilder& builder_;
  Segments segments_;
  uint64_t input_;
  uint64_t output_;
  uint64_t scratch_ = 0;
  std::vector<StepId> reduced_;  ///< who used each slot last
};

void reduce_alone(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t bytes = bytes_of(operation);
  if (operation.reduction.op != ReduceOp::kPremultipliedSum) {
    return builder.copy({Memory::kOutput, 0, bytes}, {Memory::kInput, 0, bytes});
  }
  const Segments segments = builder.segments(bytes);
  for (uint64_t k = 0; k < segments.count(); ++k) {
    builder.add_source({Memory::kInput, segments.offset(k), segments.size(k)});
    builder.reduce({Memory::kOutput, segments.offset(k), segments.size(k)});
  }
}

/// One message to and from all.
void reduce_everywhere(ScheduleBuilder& builder, const Segments& segment) {
  const uint64_t others = static_cast<uint64_t>(builder.size() - 1);
  builder.reserve(2 * others + 1, others + 1, 2 * others);
  const Slice own{Memory::kInput, 0, segment.size(0)};
  const StepId first = builder.send(builder.after(1), kToOwner, own);
  for (int i = 2; i < builder.size(); ++i) builder.send(builder.after(i), kToOwner, own);
  const StepId reduce = PartReduction(builder, segment, 0, 0).add(0);
  // The output may be the input, which must not change before it has left.
  for (StepId send = first; send < first + others; ++send) builder.order(send, reduce);
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
  const uint64_t others = static_cast<uint64_t>(size - 1);
  builder.reserve(rounds * (4 * others + 1), rounds * (others + 1), rounds * 4 * others);

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
      sent[peer] = builder.send(peer, kToOwner, slice(Memory::kInput, peer, k));
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
      // As above: the output may be the input.
      builder.order(sent[peer], builder.receive(peer, kFromOwner, slice(Memory::kOutput, peer, k)));
    }
  }
}

void plan_reduce_scatter(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t part = bytes_of(operation);
  if (part == 0) return;
  if (builder.size() == 1) return reduce_alone(builder, operation);
  const Segments segments = builder.segments(part);
  const uint64_t others = static_cast<uint64_t>(builder.size() - 1);
  builder.reserve(segments.count() * (2 * others + 1), segments.count() * (others + 1),
                  segments.count() * 2 * others);
  PartReduction reduction(builder, segments, static_cast<uint64_t>(builder.rank()) * part, 0);
  for (uint64_t k = 0; k < segments.count(); ++k) {
    for (int i = 1; i < builder.size(); ++i) {
      const int peer = builder.after(i);
      const uint64_t offset = static_cast<uint64_t>(peer) * part + segments.offset(k);
      builder.send(peer, kToOwner, {Memory::kInput, offset, segments.size(k)});
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
    builder.reserve(segments.count(), 0, 0);
    for (uint64_t k = 0; k < segments.count(); ++k) {
      builder.send(operation.root, kToOwner,
                   {Memory::kInput, segments.offset(k), segments.size(k)});
    }
    return;
  }
  const uint64_t others = static_cast<uint64_t>(builder.size() - 1);
  builder.reserve(segments.count() * (others + 1), segments.count() * (others + 1),
                  segments.count() * 2 * others);
  PartReduction reduction(builder, segments, 0, 0);
  for (uint64_t k = 0; k < segments.count(); ++k) reduction.add(k);
}

}  // namespace lockstep::dist
