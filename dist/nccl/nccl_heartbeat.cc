#include "dist/nccl/nccl_heartbeat.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/error.h"
#include "dist/group/failure.h"

namespace lockstep::dist {

NcclHeartbeat::NcclHeartbeat(std::shared_ptr<Communicator> communicator,
                             std::chrono::milliseconds limit)
    : communicator_(std::move(communicator)), limit_(limit) {
  thread_.start("nccl heartbeat", [this] { run(); });
}

NcclHeartbeat::~NcclHeartbeat() {
  if (thread_.left_behind()) return;
  {
    const MutexLock guard(lock_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<NcclPulse> NcclHeartbeat::add(std::string group) {
  auto pulse = std::make_shared<NcclPulse>(std::move(group));
  const MutexLock guard(lock_);
  pulses_.push_back(pulse);
  return pulse;
}

void NcclHeartbeat::run() {
  UniqueLock lock(lock_);
  while (!stopping_) {
    changed_.wait_for(lock, limit_ / 4, [&]() LS_REQUIRES(lock_) { return stopping_; });
    listen();
  }
}

void NcclHeartbeat::listen() {
  std::erase_if(pulses_, [](const std::weak_ptr<NcclPulse>& pulse) { return pulse.expired(); });
  for (const std::weak_ptr<NcclPulse>& each : pulses_) {
    const std::shared_ptr<NcclPulse> pulse = each.lock();
    if (told_ || pulse == nullptr || pulse->silence() < limit_) continue;
    told_ = true;
    communicator_->abort(failure_text(BackendError(fmt::format(
        "[nccl] the watch of group {} on rank {} has hung for {} s, in a call of NCCL or of the "
        "driver that does not return. End the process, and look at the GPU: `lockstep doctor "
        "--gpu`, `dmesg | grep Xid`.",
        pulse->group(), communicator_->rank(), std::chrono::duration<double>(limit_).count()))));
  }
}

}  // namespace lockstep::dist
