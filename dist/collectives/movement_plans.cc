#include <algorithm>

#include "core/base/check.h"
#include "dist/collectives/schedule_builder.h"

namespace lockstep::dist {

namespace {

using StepId = ScheduleBuilder::StepId;
using Memory = Slice::Memory;

constexpr int kLane = 0;

/// Returns where the parts of all_to_all begin, in bytes, and where the last ends.
std::vector<uint64_t> offsets_of(const std::vector<int64_t>& counts, DType dtype, int size) {
  LS_ASSERT(counts.size() == static_cast<size_t>(size));
  std::vector<uint64_t> offsets(1);
  for (const int64_t count : counts) {
    offsets.push_back(offsets.back() + static_cast<uint64_t>(count) * size_of(dtype));
  }
  return offsets;
}

void broadcast_from_root(ScheduleBuilder& builder, const std::vector<int>& others,
                         const Parts& parts, const std::vector<Segments>& segments) {
  for (uint64_t k = 0; k < segments[0].count(); ++k) {
    for (size_t part = 0; part < others.size(); ++part) {
      if (k >= segments[part].count()) continue;
      const uint64_t offset = parts.offset(static_cast<int>(part)) + segments[part].offset(k);
      builder.send(others[part], kLane, {Memory::kInput, offset, segments[part].size(k)});
    }
  }
}

void broadcast_onwards(ScheduleBuilder& builder, int root, const std::vector<int>& others,
                       const Parts& parts, const std::vector<Segments>& segments) {
  const auto slice = [&](size_t part, uint64_t segment) {
    return Slice{Memory::kOutput,
                 parts.offset(static_cast<int>(part)) + segments[part].offset(segment),
                 segments[part].size(segment)};
  };
  const size_t count = others.size();
  const size_t own =
      static_cast<size_t>(std::find(others.begin(), others.end(), builder.rank()) - others.begin());
  for (uint64_t k = 0; k < segments[0].count(); ++k) {
    if (k < segments[own].count()) {
      const StepId received = builder.receive(root, kLane, slice(own, k));
      for (size_t i = 1; i < count; ++i) {
        builder.order(received, builder.send(others[(own + i) % count], kLane, slice(own, k)));
      }
    }
    for (size_t i = 1; i < count; ++i) {
      const size_t part = (own + i) % count;
      if (k < segments[part].count()) builder.receive(others[part], kLane, slice(part, k));
    }
  }
}

}  // namespace

void plan_all_gather(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t part = bytes_of(operation);
  const Segments segments = builder.segments(part);
  const uint64_t others = static_cast<uint64_t>(builder.size() - 1);
  builder.reserve(segments.count() * 2 * others + 1, 1, 0);
  for (uint64_t k = 0; k < segments.count(); ++k) {
    for (int i = 1; i < builder.size(); ++i) {
      const int peer = builder.after(i);
      const uint64_t offset = static_cast<uint64_t>(peer) * part + segments.offset(k);
      builder.send(peer, kLane, {Memory::kInput, segments.offset(k), segments.size(k)});
      builder.receive(peer, kLane, {Memory::kOutput, offset, segments.size(k)});
    }
  }
  builder.copy({Memory::kOutput, static_cast<uint64_t>(builder.rank()) * part, part},
               {Memory::kInput, 0, part});
}

void plan_broadcast(ScheduleBuilder& builder, const Operation& operation) {
  const uint64_t bytes = bytes_of(operation);
  const int size = builder.size();
  const bool is_root = builder.rank() == operation.root;
  if (bytes == 0) return;
  if (is_root) builder.copy({Memory::kOutput, 0, bytes}, {Memory::kInput, 0, bytes});
  if (size == 1) return;

  const Segments whole = builder.segments(bytes);
  if (whole.count() == 1 && bytes <= builder.cut().small_bytes) {
    if (!is_root) {
      builder.receive(operation.root, kLane, {Memory::kOutput, 0, bytes});
      return;
    }
    for (int i = 1; i < size; ++i) {
      builder.send(builder.after(i), kLane, {Memory::kInput, 0, bytes});
    }
    return;
  }

  const Parts parts(bytes, size - 1);
  std::vector<int> others;
  std::vector<Segments> segments;
  for (int i = 1; i < size; ++i) {
    others.push_back((operation.root + i) % size);
    segments.push_back(builder.segments(parts.size(i - 1)));
  }
  const uint64_t rounds = segments[0].count();  // no part is larger
  builder.reserve(rounds * 2 * others.size(), 0, rounds * others.size());
  if (is_root) return broadcast_from_root(builder, others, parts, segments);
  broadcast_onwards(builder, operation.root, others, parts, segments);
}

void plan_all_to_all(ScheduleBuilder& builder, const Operation& operation) {
  const int size = builder.size();
  const int own = builder.rank();
  const auto to = offsets_of(operation.send_counts, operation.dtype, size);
  const auto from = offsets_of(operation.receive_counts, operation.dtype, size);
  LS_ASSERT(to[own + 1] - to[own] == from[own + 1] - from[own]);
  std::vector<Segments> sent, received;
  uint64_t rounds = 0;
  for (int rank = 0; rank < size; ++rank) {
    sent.push_back(builder.segments(to[rank + 1] - to[rank]));
    received.push_back(builder.segments(from[rank + 1] - from[rank]));
    if (rank != own) rounds = std::max({rounds, sent[rank].count(), received[rank].count()});
  }
  for (uint64_t k = 0; k < rounds; ++k) {
    for (int i = 1; i < size; ++i) {
      const int peer = builder.after(i);
      if (k < sent[peer].count()) {
        builder.send(peer, kLane,
                     {Memory::kInput, to[peer] + sent[peer].offset(k), sent[peer].size(k)});
      }
      if (k < received[peer].count()) {
        builder.receive(
            peer, kLane,
            {Memory::kOutput, from[peer] + received[peer].offset(k), received[peer].size(k)});
      }
    }
  }
  builder.copy({Memory::kOutput, from[own], to[own + 1] - to[own]},
               {Memory::kInput, to[own], to[own + 1] - to[own]});
}

void plan_barrier(ScheduleBuilder& builder, const Operation&) {
  const uint64_t others = static_cast<uint64_t>(builder.size() - 1);
  builder.reserve(2 * others, 0, 0);
  for (int i = 1; i < builder.size(); ++i) {
    builder.send(builder.after(i), kLane, {Memory::kInput, 0, 0});
    builder.receive(builder.after(i), kLane, {Memory::kOutput, 0, 0});
  }
}

// A send of no elements still sends a message, so that the receiver can wait for it.

void plan_send(ScheduleBuilder& builder, const Operation& operation) {
  const Segments segments = builder.segments(bytes_of(operation));
  builder.reserve(std::max<uint64_t>(segments.count(), 1), 0, 0);
  for (uint64_t k = 0; k < segments.count(); ++k) {
    builder.send(operation.root, kLane, {Memory::kInput, segments.offset(k), segments.size(k)});
  }
  if (segments.count() == 0) builder.send(operation.root, kLane, {Memory::kInput, 0, 0});
}

void plan_receive(ScheduleBuilder& builder, const Operation& operation) {
  const Segments segments = builder.segments(bytes_of(operation));
  builder.reserve(std::max<uint64_t>(segments.count(), 1), 0, 0);
  for (uint64_t k = 0; k < segments.count(); ++k) {
    builder.receive(operation.root, kLane, {Memory::kOutput, segments.offset(k), segments.size(k)});
  }
  if (segments.count() == 0) builder.receive(operation.root, kLane, {Memory::kOutput, 0, 0});
}

}  // namespace lockstep::dist
