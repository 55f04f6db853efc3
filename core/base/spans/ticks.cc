#include "core/base/spans/ticks.h"

#include <cmath>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockstep {

#if defined(__x86_64__)
namespace detail {

bool has_constant_tick_rate() noexcept {
  // Bit 8 of EDX: the counter runs at one rate in all power states. Virtual machines pass it on
  // where they do not move between hosts.
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

const bool constant_tick_rate = has_constant_tick_rate();

}  // namespace detail
#endif

TickClock::Moment TickClock::Moment::now() noexcept {
  return {now_ticks(), static_cast<int64_t>(steady_ticks())};
}

TickClock::TickClock(Moment begin, Moment end) noexcept : begin_(begin) {
  if (end.ticks > begin.ticks && end.steady_ns > begin.steady_ns) {
    ns_per_tick_ = static_cast<double>(end.steady_ns - begin.steady_ns) /
                   static_cast<double>(end.ticks - begin.ticks);
  }
}

int64_t TickClock::steady_ns(uint64_t ticks) const noexcept {
  const auto passed = static_cast<double>(static_cast<int64_t>(ticks - begin_.ticks));
  return begin_.steady_ns + std::llround(passed * ns_per_tick_);
}

}  // namespace lockstep
