#include "dist/collectives/host_sums.h"

#include <utility>

namespace lockstep::dist {

namespace {

using StepId = HostSums::StepId;

/// Number of the sums of the host's ranks other than this one.
uint64_t sums_of_others(const ScheduleBuilder& builder) {
  uint64_t sums = 0;
  for (const int rank : builder.layout().ranks_of(builder.layout().host_of(builder.rank()))) {
    if (rank != builder.rank()) sums += static_cast<uint64_t>(builder.sums(rank));
  }
  return sums;
}

uint64_t partials_of(const ScheduleBuilder& builder, int host) {
  uint64_t count = 0;
  for (const SumOrder::Partial& each : builder.order().partials) count += each.host == host ? 1 : 0;
  return count;
}

}  // namespace

HostSums::HostSums(ScheduleBuilder& builder, const Operation& operation, uint64_t items,
                   uint64_t finished, uint64_t item_bytes)
    : builder_(builder),
      host_(builder.layout().host_of(builder.rank())),
      growth_(partial_growth(operation.dtype, operation.reduction.op)),
      values_(builder, items, sums_of_others(builder), item_bytes),
      partials_(builder, items, partials_of(builder, host_), item_bytes * growth_),
      foreign_(builder, finished, builder.order().partials.size() - partials_of(builder, host_),
               item_bytes * growth_) {
  const DType kept = partial_dtype(operation.dtype, operation.reduction.op);
  for (const SumOrder::Partial& partial : builder.order().partials) {
    if (partial.host != host_) continue;
    reductions_.push_back(
        builder.add_reduction({operation.dtype, kept, operation.reduction, partial.joins}));
  }
  finish_ =
      builder.add_reduction({kept, operation.dtype, reduction_of_partials(operation.reduction),
                             builder.order().partial_joins});
}

std::vector<StepId> HostSums::send(int agent, Slice values) {
  std::vector<StepId> reads;
  for (int sum = 0; sum < builder_.sums(builder_.rank()); ++sum) {
    reads.push_back(builder_.send(agent, kValues, values));
    values.offset += builder_.input_stride();
  }
  return reads;
}

HostSums::Partials HostSums::add_up(const Slice& values) {
  values_.next();
  partials_.next();
  const SumOrder& order = builder_.order();
  std::vector<StepId> receives;
  std::vector<Slice> places(order.terms.size());
  // The messages of one rank come in the order of its sums.
  for (size_t i = 0; i < order.terms.size(); ++i) {
    const auto& [rank, sum] = order.terms[i];
    if (builder_.layout().host_of(rank) != host_) continue;
    if (rank == builder_.rank()) {
      places[i] = values;
      places[i].offset += static_cast<uint64_t>(sum) * builder_.input_stride();
      continue;
    }
    places[i] = values_.segment(receives.size(), values.bytes);
    receives.push_back(builder_.receive(rank, kValues, places[i]));
    values_.written_by(receives.back());
  }
  Partials made;
  for (const SumOrder::Partial& partial : order.partials) {
    if (partial.host != host_) continue;
    for (size_t i = 0; i < partial.joins.size(); ++i)
      builder_.add_source(places[partial.first + i]);
    const size_t number = made.slices.size();
    made.slices.push_back(partials_.segment(number, values.bytes * growth_));
    made.made.push_back(builder_.reduce(made.slices.back(), reductions_[number]));
    partials_.written_by(made.made.back());
    values_.read_by(made.made.back());
    for (const StepId receive : receives) builder_.order(receive, made.made.back());
  }
  return made;
}

void HostSums::send_partials(int to, const Partials& own) {
  for (size_t i = 0; i < own.slices.size(); ++i) {
    const StepId sent = builder_.send(to, kValues, own.slices[i]);
    builder_.order(own.made[i], sent);
    partials_.read_by(sent);
  }
}

StepId HostSums::finish(const Partials& own, const Slice& result,
                        const std::function<int(int)>& agent_of) {
  foreign_.next();
  std::vector<StepId> before = own.made;
  std::vector<Slice> places;
  uint64_t foreign = 0;
  size_t next_own = 0;
  for (const SumOrder::Partial& partial : builder_.order().partials) {
    if (partial.host == host_) {
      places.push_back(own.slices[next_own++]);
      continue;
    }
    places.push_back(foreign_.segment(foreign++, result.bytes * growth_));
    before.push_back(builder_.receive(agent_of(partial.host), kValues, places.back()));
    foreign_.written_by(before.back());
  }
  for (const Slice& place : places) builder_.add_source(place);
  const StepId finished = builder_.reduce(result, finish_);
  for (const StepId step : before) builder_.order(step, finished);
  partials_.read_by(finished);
  foreign_.read_by(finished);
  return finished;
}

}  // namespace lockstep::dist
