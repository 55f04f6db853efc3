#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::profile {

/// Which steps are profiled: `wait` of them pass, `warmup` are recorded and forgotten, so that the
/// buffers' memory is there, then `active` are recorded. That is a cycle, of which there are
/// `repeat`; with 0 they go on.
struct Schedule {
  int64_t wait = 5;
  int64_t warmup = 2;
  int64_t active = 3;
  int64_t repeat = 1;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// What a profiler does in a step.
enum class StepAction : uint8_t { kNone, kWarmUp, kRecord };

/// What is done in step `index`, from 0.
StepAction action_of(const Schedule& schedule, int64_t index);
/// Whether `index` is the last recorded step of its cycle.
bool ends_cycle(const Schedule& schedule, int64_t index);

/// Reads "wait=5,warmup=2,active=3,repeat=1", of which each part may be missing and then keeps its
/// default. Throws ConfigError naming the part that is not understood.
Schedule parse_schedule(std::string_view text);
/// Returns the text that `parse_schedule` reads, with all parts.
std::string to_string(const Schedule& schedule);

}  // namespace lockstep::profile
