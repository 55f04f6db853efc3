#include "dist/collectives/schedule.h"

#include "dist/collectives/schedule_builder.h"

namespace lockstep::dist {

uint64_t bytes_sent(const Schedule& schedule) {
  uint64_t bytes = 0;
  for (const Step& step : schedule.steps) {
    if (step.kind == Step::Kind::kSend) bytes += step.slice.bytes;
  }
  return bytes;
}

Schedule plan(const Operation& operation, int rank, int size, const Cut& cut) {
  ScheduleBuilder builder(operation, rank, size, cut);
  switch (operation.kind) {
    case OpKind::kAllReduce:
      plan_all_reduce(builder, operation);
      break;
    case OpKind::kReduceScatter:
      plan_reduce_scatter(builder, operation);
      break;
    case OpKind::kAllGather:
      plan_all_gather(builder, operation);
      break;
    case OpKind::kBroadcast:
      plan_broadcast(builder, operation);
      break;
    case OpKind::kReduce:
      plan_reduce(builder, operation);
      break;
    case OpKind::kAllToAll:
      plan_all_to_all(builder, operation);
      break;
    case OpKind::kBarrier:
      plan_barrier(builder);
      break;
    case OpKind::kSend:
      plan_send(builder, operation);
      break;
    case OpKind::kReceive:
      plan_receive(builder, operation);
      break;
  }
  return builder.finish();
}

}  // namespace lockstep::dist
