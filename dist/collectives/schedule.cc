#include "dist/collectives/schedule.h"

#include "dist/collectives/host_choice.h"
#include "dist/collectives/schedule_builder.h"

namespace lockstep::dist {

namespace {

using Planner = void (*)(ScheduleBuilder& builder, const Operation& operation);

Planner all_reduce_over_hosts(const Operation& operation, const HostLayout& layout,
                              const Cut& cut) {
  const HostWay way = cut.way.value_or(fastest_way(operation, layout, cut.segment_bytes));
  const uint64_t growth = partial_growth(operation.dtype, operation.reduction.op);
  const bool is_one_message = bytes_of(operation) * growth <= cut.segment_bytes;
  if (is_one_message && way == HostWay::kTree && operation.deal.is_empty()) {
    return &plan_all_reduce_along_tree;
  }
  if (is_one_message && way == HostWay::kExchange && layout.has_levels()) {
    return &plan_all_reduce_by_exchange;
  }
  return saves_between_hosts(operation, layout) ? &plan_all_reduce_over_hosts : nullptr;
}

Planner barrier_over_hosts(const HostLayout& layout, const Cut& cut) {
  const HostWay way =
      cut.way.value_or(fastest_way({.kind = OpKind::kBarrier}, layout, cut.segment_bytes));
  if (way == HostWay::kTree) return &plan_barrier_along_tree;
  return layout.has_levels() ? &plan_barrier_by_exchange : nullptr;
}

/// Returns the plan over hosts if it is better, else null.
Planner planner_over_hosts(const Operation& operation, const HostLayout& layout, const Cut& cut) {
  if (layout.hosts() == 1) return nullptr;
  if (operation.kind == OpKind::kBarrier) return barrier_over_hosts(layout, cut);
  if (bytes_of(operation) == 0) return nullptr;
  switch (operation.kind) {
    case OpKind::kAllReduce:
      return all_reduce_over_hosts(operation, layout, cut);
    case OpKind::kReduceScatter:
      return saves_between_hosts(operation, layout) ? &plan_reduce_scatter_over_hosts : nullptr;
    case OpKind::kAllGather:
      return saves_between_hosts(operation, layout) ? &plan_all_gather_over_hosts : nullptr;
    case OpKind::kBroadcast: {
      const bool is_large = layout.has_levels() && bytes_of(operation) > cut.small_bytes;
      return is_large ? &plan_broadcast_over_hosts : nullptr;
    }
    default:
      return nullptr;
  }
}

/// The plan in which ranks exchange everything with each other.
Planner direct_planner(OpKind kind) {
  switch (kind) {
    case OpKind::kAllReduce:
      return &plan_all_reduce;
    case OpKind::kReduceScatter:
      return &plan_reduce_scatter;
    case OpKind::kAllGather:
      return &plan_all_gather;
    case OpKind::kBroadcast:
      return &plan_broadcast;
    case OpKind::kReduce:
      return &plan_reduce;
    case OpKind::kAllToAll:
      return &plan_all_to_all;
    case OpKind::kBarrier:
      return &plan_barrier;
    case OpKind::kSend:
      return &plan_send;
    case OpKind::kReceive:
      break;
  }
  return &plan_receive;
}

}  // namespace

uint64_t bytes_sent(const Schedule& schedule) {
  uint64_t bytes = 0;
  for (const Step& step : schedule.steps) {
    if (step.kind == Step::Kind::kSend) bytes += step.slice.bytes;
  }
  return bytes;
}

Schedule plan(const Operation& operation, int rank, const HostLayout& layout, const Cut& cut) {
  ScheduleBuilder builder(operation, rank, layout, cut);
  const Planner over_hosts = planner_over_hosts(operation, layout, cut);
  const Planner planner = over_hosts != nullptr ? over_hosts : direct_planner(operation.kind);
  planner(builder, operation);
  return builder.finish();
}

Schedule plan(const Operation& operation, int rank, int size, const Cut& cut) {
  return plan(operation, rank, HostLayout::one_host(size), cut);
}

}  // namespace lockstep::dist
