#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "dist/group/communicator.h"

namespace lockstep::dist {

/// The sign of life of a group's watch. Written by its thread, read by NcclHeartbeat's.
class NcclPulse {
 public:
  explicit NcclPulse(std::string group) : group_(std::move(group)) {}

  void beat() noexcept {
    last_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  /// Time since the last beat; 0 while nobody is to beat.
  std::chrono::nanoseconds silence() const noexcept {
    const Clock::rep last = last_.load(std::memory_order_relaxed);
    return last == 0 ? Clock::duration(0) : Clock::now().time_since_epoch() - Clock::duration(last);
  }
  const std::string& group() const { return group_; }

  /// While alive, silence is counted.
  class Beating {
   public:
    explicit Beating(NcclPulse& pulse) : pulse_(pulse) { pulse_.beat(); }
    ~Beating() { pulse_.last_.store(0, std::memory_order_relaxed); }
    Beating(const Beating&) = delete;
    Beating& operator=(const Beating&) = delete;

   private:
    NcclPulse& pulse_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  const std::string group_;
  std::atomic<Clock::rep> last_ = 0;  ///< 0: nobody is to beat
};

/// A thread that notices if a watch itself hangs, in a call of NCCL or of the driver that does not
/// return: nothing would end the group's operations then. It fails the job, so that the other ranks
/// end and name this one; the process may have to be ended from outside, as `lockstep launch` does.
/// One for all groups of a rank. Thread-safe.
class NcclHeartbeat {
 public:
  /// `limit`: silence of a watch that counts as a hang.
  NcclHeartbeat(std::shared_ptr<Communicator> communicator, std::chrono::milliseconds limit);
  ~NcclHeartbeat();
  NcclHeartbeat(const NcclHeartbeat&) = delete;
  NcclHeartbeat& operator=(const NcclHeartbeat&) = delete;

  /// A pulse for one more watch, which is listened to as long as the caller keeps it.
  std::shared_ptr<NcclPulse> add(std::string group);

 private:
  void run();
  void listen() LS_REQUIRES(lock_);

  const std::shared_ptr<Communicator> communicator_;
  const std::chrono::milliseconds limit_;
  Mutex lock_;
  CondVar changed_;
  std::vector<std::weak_ptr<NcclPulse>> pulses_ LS_GUARDED_BY(lock_);
  bool stopping_ LS_GUARDED_BY(lock_) = false;
  bool told_ LS_GUARDED_BY(lock_) = false;  ///< the job was failed
  ServiceThread thread_;
};

}  // namespace lockstep::dist
