#include "dist/collectives/schedule_builder.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"

namespace lockstep::dist {

namespace {

constexpr uint64_t kGrain = 64;
/// Bytes of one copying step, which takes about 20 us. Longer steps keep a very large copy within
/// kMostCopies steps.
constexpr uint64_t kCopyBytes = 256 * 1024;
constexpr uint64_t kMostCopies = 1024;

uint64_t up_to_grain(uint64_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }
uint64_t quotient_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

}  // namespace

Segments::Segments(uint64_t bytes, uint64_t most) : bytes_(bytes) {
  if (bytes == 0) return;
  const uint64_t limit = std::max(most / kGrain * kGrain, kGrain);
  each_ = up_to_grain(quotient_up(bytes, quotient_up(bytes, limit)));
  count_ = quotient_up(bytes, each_);
}

Parts::Parts(uint64_t bytes, int parts)
    : bytes_(bytes), each_(up_to_grain(quotient_up(bytes, static_cast<uint64_t>(parts)))) {}

uint64_t Parts::offset(int part) const {
  return std::min(bytes_, each_ * static_cast<uint64_t>(part));
}
uint64_t Parts::size(int part) const { return std::min(each_, bytes_ - offset(part)); }

ScheduleBuilder::ScheduleBuilder(const Operation& operation, int rank, const HostLayout& layout,
                                 const Cut& cut)
    : rank_(rank),
      layout_(layout),
      cut_(cut),
      input_stride_(operation.input_stride),
      all_sums_(layout.ranks()) {
  const LeafDeal& deal = operation.deal;
  LS_ASSERT(deal.leaves() == operation.reduction.leaves);
  if (!is_reduction(operation.kind) && operation.kind != OpKind::kBarrier) return;
  order_ = sum_order(layout, deal);
  schedule_.reductions.push_back(
      {operation.dtype, operation.dtype, operation.reduction, order_.joins});
  if (deal.is_empty()) return;
  all_sums_ = static_cast<int>(order_.terms.size());
  sums_.resize(static_cast<size_t>(layout.ranks()));
  for (const SumOrder::Term& term : order_.terms) ++sums_[static_cast<size_t>(term.rank)];
}

void ScheduleBuilder::reserve(uint64_t steps, uint64_t sources, uint64_t orders) {
  schedule_.steps.reserve(schedule_.steps.size() + steps);
  schedule_.sources.reserve(schedule_.sources.size() + sources);
  orders_.reserve(orders_.size() + orders);
}

ScheduleBuilder::StepId ScheduleBuilder::add(Step step) {
  schedule_.steps.push_back(step);
  return static_cast<StepId>(schedule_.steps.size() - 1);
}

ScheduleBuilder::StepId ScheduleBuilder::send(int peer, int lane, const Slice& slice) {
  return add({.kind = Step::Kind::kSend,
              .lane = static_cast<uint8_t>(lane),
              .peer = peer,
              .slice = slice});
}

ScheduleBuilder::StepId ScheduleBuilder::receive(int peer, int lane, const Slice& slice) {
  return add({.kind = Step::Kind::kReceive,
              .lane = static_cast<uint8_t>(lane),
              .peer = peer,
              .slice = slice});
}

void ScheduleBuilder::add_source(const Slice& slice) { schedule_.sources.push_back(slice); }

uint16_t ScheduleBuilder::add_reduction(OrderedReduction reduction) {
  schedule_.reductions.push_back(std::move(reduction));
  return static_cast<uint16_t>(schedule_.reductions.size() - 1);
}

ScheduleBuilder::StepId ScheduleBuilder::reduce(const Slice& result, uint16_t reduction) {
  const uint32_t first = unclaimed_source_;
  unclaimed_source_ = static_cast<uint32_t>(schedule_.sources.size());
  return add({.kind = Step::Kind::kReduce,
              .reduction = reduction,
              .slice = result,
              .first_source = first,
              .source_count = unclaimed_source_ - first});
}

void ScheduleBuilder::copy(const Slice& to, const Slice& from) {
  const Segments pieces(from.bytes, std::max(kCopyBytes, from.bytes / kMostCopies));
  for (uint64_t k = 0; k < pieces.count(); ++k) {
    add_source({from.memory, from.offset + pieces.offset(k), pieces.size(k)});
    add({.kind = Step::Kind::kCopy,
         .slice = {to.memory, to.offset + pieces.offset(k), pieces.size(k)},
         .first_source = std::exchange(unclaimed_source_, unclaimed_source_ + 1),
         .source_count = 1});
  }
}

uint64_t ScheduleBuilder::scratch(uint64_t bytes) {
  return std::exchange(schedule_.scratch_bytes, schedule_.scratch_bytes + up_to_grain(bytes));
}

Schedule ScheduleBuilder::finish() {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  std::vector<Step>& steps = schedule_.steps;
  LS_ASSERT(steps.size() < kMost && schedule_.sources.size() < kMost && orders_.size() < kMost);
  for (const auto& [earlier, later] : orders_) {
    ++steps[earlier].next_count;
    ++steps[later].waits_for;
  }
  uint32_t first = 0;
  for (Step& step : steps) {
    step.first_next = first;
    first += std::exchange(step.next_count, 0);
  }
  schedule_.next.resize(orders_.size());
  for (const auto& [earlier, later] : orders_) {
    Step& step = steps[earlier];
    schedule_.next[step.first_next + step.next_count++] = later;
  }
  return std::move(schedule_);
}

}  // namespace lockstep::dist
