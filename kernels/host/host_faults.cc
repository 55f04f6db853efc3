#include "kernels/host/host_faults.h"

#include <array>
#include <atomic>
#include <limits>

#include "core/base/check.h"

namespace lockstep {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct Fault {
  std::atomic<int64_t> calls = 0;
  std::atomic<int64_t> first = kNever;  ///< number of the first call that fails
  std::atomic<int64_t> last = kNever;   ///< number of the last call that fails
};
constinit std::array<Fault, kHostFaults> g_faults{};

Fault& fault(HostFault kind) { return g_faults[static_cast<size_t>(kind)]; }

}  // namespace

HostFaultGuard::HostFaultGuard(HostFault kind, int64_t nth, bool all_later) : kind_(kind) {
  LS_CHECK(nth >= 1, ConfigError, "[host] calls are counted from 1, got {}.", nth);
  Fault& wanted = fault(kind);
  wanted.first = kNever;
  wanted.calls = 0;
  wanted.last = all_later ? kNever : nth;
  wanted.first = nth;
}

HostFaultGuard::~HostFaultGuard() { fault(kind_).first = kNever; }

int64_t HostFaultGuard::calls() const { return fault(kind_).calls; }

bool host::should_fail(HostFault kind) noexcept {
  Fault& watched = fault(kind);
  const int64_t first = watched.first.load(std::memory_order_relaxed);
  if (first == kNever) [[likely]] {
    return false;
  }
  const int64_t call = watched.calls.fetch_add(1) + 1;
  return call >= first && call <= watched.last;
}

}  // namespace lockstep
