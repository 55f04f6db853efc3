#include "dist/group/attendance.h"

#include "core/base/check.h"
#include "core/ops/factory/factory.h"

namespace lockstep::dist {

namespace {

enum Presence : int32_t { kAbsent, kPresent, kPresentInLearntOrder };

}  // namespace

Attendance::Attendance(ProcessGroup& group)
    : group_(group),
      own_(empty({1}, {DType::kI32, kCPU})),
      all_(empty({group.size()}, {DType::kI32, kCPU})) {}

void Attendance::call(bool present, bool learnt_order) {
  // An exchange left over from a failed step may still read the buffer written below.
  work_.wait();
  *own_.data<int32_t>() = !present ? kAbsent : learnt_order ? kPresentInLearntOrder : kPresent;
  work_ = group_.all_gather(all_, own_);
}

Present Attendance::wait() {
  work_.wait();
  Present present;
  const auto* answers = all_.data<int32_t>();
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (answers[rank] == kAbsent) continue;
    const bool learnt_order = answers[rank] == kPresentInLearntOrder;
    if (present.ranks++ == 0) {
      present.lowest = rank;
      present.learnt_order = learnt_order;
    } else if (learnt_order != present.learnt_order) {
      finish_together(group_);
      throw MismatchError(
          fmt::format("[ddp] ranks {} and {} came to this backward from other steps: expected "
                      "zero_grad() between the same backwards on all ranks, got it on one of them.",
                      present.lowest, rank));
    }
  }
  return present;
}

}  // namespace lockstep::dist
