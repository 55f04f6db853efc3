#include "profile/schedule.h"

#include <array>
#include <utility>

#include "core/base/check.h"
#include "core/base/parse_number.h"

namespace lockstep::profile {

namespace {

constexpr int64_t kMostSteps = int64_t{1} << 40;  // so that sums of the parts cannot overflow

int64_t cycle_length(const Schedule& schedule) {
  return schedule.wait + schedule.warmup + schedule.active;
}

}  // namespace

StepAction action_of(const Schedule& schedule, int64_t index) {
  const int64_t length = cycle_length(schedule);
  if (schedule.active == 0) return StepAction::kNone;
  if (schedule.repeat > 0 && index / length >= schedule.repeat) return StepAction::kNone;
  const int64_t place = index % length;
  if (place < schedule.wait) return StepAction::kNone;
  return place < schedule.wait + schedule.warmup ? StepAction::kWarmUp : StepAction::kRecord;
}

bool ends_cycle(const Schedule& schedule, int64_t index) {
  return action_of(schedule, index) == StepAction::kRecord &&
         index % cycle_length(schedule) == cycle_length(schedule) - 1;
}

Schedule parse_schedule(std::string_view text) {
  Schedule schedule;
  const std::array<std::pair<std::string_view, int64_t*>, 4> parts = {{
      {"wait", &schedule.wait},
      {"warmup", &schedule.warmup},
      {"active", &schedule.active},
      {"repeat", &schedule.repeat},
  }};
  constexpr const char* kExpected =
      "expected wait=N,warmup=N,active=N,repeat=N or some of these, each a number of steps";
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(part.size() < text.size() ? part.size() + 1 : part.size());
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    int64_t* into = nullptr;
    for (const auto& [known, value] : parts) {
      if (known == name) into = value;
    }
    LS_CHECK(into != nullptr && equals != std::string_view::npos, ConfigError,
             "[profile] the schedule has no part \"{}\": {}.", part, kExpected);
    const auto number = parse_number<int64_t>(part.substr(equals + 1));
    LS_CHECK(number && *number >= 0 && *number <= kMostSteps, ConfigError,
             "[profile] {} is no number of steps: {}, got \"{}\".", name, kExpected,
             part.substr(equals + 1));
    *into = *number;
  }
  LS_CHECK(schedule.active > 0, ConfigError,
           "[profile] the schedule records no step: expected active of at least 1, got 0.");
  return schedule;
}

std::string to_string(const Schedule& schedule) {
  return fmt::format("wait={},warmup={},active={},repeat={}", schedule.wait, schedule.warmup,
                     schedule.active, schedule.repeat);
}

}  // namespace lockstep::profile
