#include "dist/collectives/short_slices.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace lockstep::dist {

namespace {

/// `struct sched_attr` of Linux, which the C library of many systems lacks.
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;  ///< ns
  uint64_t deadline;
  uint64_t period;
};

}  // namespace

bool ask_for_short_slices(std::chrono::microseconds length) noexcept {
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return false;
  // Keep a policy that was set for this process explicitly.
  if (attributes.policy != SCHED_OTHER) return false;
  attributes.size = sizeof attributes;
  attributes.runtime =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(length).count());
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace lockstep::dist
