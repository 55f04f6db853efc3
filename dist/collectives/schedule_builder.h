#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dist/collectives/schedule.h"
#include "dist/collectives/sum_order.h"

namespace lockstep::dist {

/// Division of a run of bytes into messages: as few equal ones as `most` bytes each allow, at
/// multiples of 64 bytes. There is none for 0 bytes.
class Segments {
 public:
  Segments() = default;
  Segments(uint64_t bytes, uint64_t most);

  uint64_t count() const { return count_; }
  uint64_t offset(uint64_t segment) const { return segment * each_; }
  uint64_t size(uint64_t segment) const {
    return segment + 1 < count_ ? each_ : bytes_ - segment * each_;
  }
  /// Size of the largest segment, rounded up to a multiple of 64.
  uint64_t room() const { return each_; }

 private:
  uint64_t bytes_ = 0;
  uint64_t each_ = 0;
  uint64_t count_ = 0;
};

/// Division of `bytes` bytes into equal parts, at multiples of 64 bytes; the last ones may be
/// shorter or empty.
class Parts {
 public:
  Parts(uint64_t bytes, int parts);

  uint64_t offset(int part) const;
  uint64_t size(int part) const;

 private:
  uint64_t bytes_;
  uint64_t each_;
};

/// Builds a Schedule step by step.
class ScheduleBuilder {
 public:
  /// Identifies a step, for `order`.
  using StepId = uint32_t;

  ScheduleBuilder(const Operation& operation, int rank, const HostLayout& layout, const Cut& cut);

  int rank() const { return rank_; }
  int size() const { return layout_.ranks(); }
  const HostLayout& layout() const { return layout_; }
  const Cut& cut() const { return cut_; }
  /// Order of a reduction.
  const SumOrder& order() const { return order_; }
  Segments segments(uint64_t bytes) const { return {bytes, cut_.segment_bytes}; }
  /// Number of sums that a rank contributes to a reduction: one, or those of its subtrees.
  int sums(int rank) const { return sums_.empty() ? 1 : sums_[static_cast<size_t>(rank)]; }
  /// Number of sums of all ranks together.
  int all_sums() const { return all_sums_; }
  /// Distance in bytes between this rank's sums in its input.
  uint64_t input_stride() const { return input_stride_; }
  /// The `i`th rank after this one, 1 <= i < size. Sending in this order, ranks send to different
  /// ones at the same time.
  int after(int i) const { return (rank_ + i) % size(); }

  /// Reserves room for additional steps, sources and orders.
  void reserve(uint64_t steps, uint64_t sources, uint64_t orders);
  StepId send(int peer, int lane, const Slice& slice);
  StepId receive(int peer, int lane, const Slice& slice);
  /// Describes a reduction other than that of all terms, which is number 0. Returns its number.
  uint16_t add_reduction(OrderedReduction reduction);
  /// Reduces the sources added by `add_source` since the last reduction or copy.
  StepId reduce(const Slice& result, uint16_t reduction = 0);
  void add_source(const Slice& slice);
  /// Copies in pieces short enough for the thread to serve its messages in between.
  void copy(const Slice& to, const Slice& from);
  /// Makes `later` wait for `earlier`.
  void order(StepId earlier, StepId later) { orders_.emplace_back(earlier, later); }

  /// Allocates scratch memory at a multiple of 64 bytes and returns its offset.
  uint64_t scratch(uint64_t bytes);

  Schedule finish();

 private:
  StepId add(Step step);

  Schedule schedule_;
  std::vector<std::pair<StepId, StepId>> orders_;
  uint32_t unclaimed_source_ = 0;
  int rank_;
  const HostLayout& layout_;
  Cut cut_;
  SumOrder order_;
  uint64_t input_stride_;
  std::vector<int> sums_;  ///< by rank; empty if each rank has one
  int all_sums_;
};

// Implementations of `plan`, by kind of operation.

void plan_all_reduce(ScheduleBuilder& builder, const Operation& operation);
void plan_reduce_scatter(ScheduleBuilder& builder, const Operation& operation);
void plan_reduce(ScheduleBuilder& builder, const Operation& operation);

void plan_all_gather(ScheduleBuilder& builder, const Operation& operation);
void plan_broadcast(ScheduleBuilder& builder, const Operation& operation);
void plan_all_to_all(ScheduleBuilder& builder, const Operation& operation);
void plan_barrier(ScheduleBuilder& builder, const Operation& operation);
void plan_send(ScheduleBuilder& builder, const Operation& operation);
void plan_receive(ScheduleBuilder& builder, const Operation& operation);

// Those for layouts of several hosts, of tensors that are not empty.

void plan_all_reduce_over_hosts(ScheduleBuilder& builder, const Operation& operation);
void plan_reduce_scatter_over_hosts(ScheduleBuilder& builder, const Operation& operation);
void plan_all_gather_over_hosts(ScheduleBuilder& builder, const Operation& operation);
void plan_broadcast_over_hosts(ScheduleBuilder& builder, const Operation& operation);

// Those of tensors that fit in a message, by way of one rank of each host.

void plan_all_reduce_by_exchange(ScheduleBuilder& builder, const Operation& operation);
void plan_all_reduce_along_tree(ScheduleBuilder& builder, const Operation& operation);
void plan_barrier_by_exchange(ScheduleBuilder& builder, const Operation& operation);
void plan_barrier_along_tree(ScheduleBuilder& builder, const Operation& operation);

}  // namespace lockstep::dist
