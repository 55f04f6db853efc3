#include "launcher/doctor/state_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "core/base/digits.h"
#include "train/report/step_line.h"

namespace lockstep::launcher {

namespace {

using cuda::DeviceState;
using train::Check;
using train::format_bytes;
using train::Health;

/// Makes the check worse; the first advice stays.
void worsen(Check& check, Health health, const std::string& advice) {
  if (health > check.health) check.health = health;
  if (check.advice.empty()) check.advice = advice;
}

void add_part(Check& check, const std::string& part) {
  check.found += (check.found.empty() ? "" : ", ") + part;
}

std::string errors_text(uint64_t count, const char* kind) {
  return fmt::format("{} {} error{}", count == 0 ? "no" : grouped(static_cast<int64_t>(count)),
                     kind, count == 1 ? "" : "s");
}

Check memory_errors(const std::string& name, const DeviceState& state) {
  Check check{name + " ECC", Health::kOk, "", ""};
  if (!state.ecc) {
    check.found = "not told, as of GPUs that have none";
  } else if (!*state.ecc) {
    check.found = "off";
    worsen(check, Health::kWarn,
           "Errors of its memory pass unnoticed: nvidia-smi -e 1 and a reset turn it on.");
  } else {
    check.found = "on";
  }
  if (state.uncorrected_errors) {
    add_part(check, errors_text(*state.uncorrected_errors, "uncorrected"));
    if (*state.uncorrected_errors > 0) {
      worsen(check, Health::kFail,
             "Data in its memory was lost since the driver was loaded. Reset the GPU (nvidia-smi "
             "-r); if errors come back, have it replaced.");
    }
  }
  if (state.corrected_errors) add_part(check, errors_text(*state.corrected_errors, "corrected"));
  if (state.uncorrected_errors_ever.value_or(0) > state.uncorrected_errors.value_or(0)) {
    add_part(check, fmt::format("{} uncorrected in its life", *state.uncorrected_errors_ever));
  }
  if (state.repair_failed) {
    add_part(check, "bad rows could not be replaced");
    worsen(check, Health::kFail, "It has no spare rows left where they are needed: replace it.");
  }
  if (state.repair_waits) {
    add_part(check, "bad memory waits to be replaced");
    worsen(check, Health::kWarn, "Reset the GPU (nvidia-smi -r), which replaces it.");
  }
  return check;
}

Check heat_and_power(const std::string& name, const DeviceState& state) {
  Check check{name + " temperature", Health::kOk, "", ""};
  if (state.celsius) {
    check.found = fmt::format("{} C", *state.celsius);
    if (state.slowdown_celsius) {
      check.found += fmt::format(" (slows down at {})", *state.slowdown_celsius);
      if (*state.celsius >= *state.slowdown_celsius) {
        worsen(check, Health::kWarn, "It is too hot: look at its fans and at the air around it.");
      }
    }
  }
  if (state.watts) add_part(check, fmt::format("{:.0f} W", *state.watts));
  if (state.limit_watts) {
    add_part(check, fmt::format("at most {:.0f} W", *state.limit_watts));
    const double usual = state.default_limit_watts.value_or(0);
    if (*state.limit_watts < 0.99 * usual) {
      check.found += fmt::format(" instead of {:.0f}", usual);
      if (*state.limit_watts < 0.7 * usual) {
        worsen(check, Health::kWarn,
               fmt::format("Its power is limited: nvidia-smi -pl {:.0f} undoes that.", usual));
      }
    }
  }
  return check;
}

Check other_processes(const std::string& name, const DeviceState& state) {
  // Without a process a driver of today counts up to some hundred MiB.
  constexpr uint64_t kUnexplained = uint64_t{1} << 30;
  Check check{name + " processes", Health::kOk, "no other process", ""};
  uint64_t named = 0;
  std::vector<std::string> texts;
  for (const cuda::GpuProcess& process : state.processes) {
    named += process.bytes.value_or(0);
    texts.push_back(process.bytes ? fmt::format("process {} holds {}", process.pid,
                                                format_bytes(*process.bytes))
                                  : fmt::format("process {}", process.pid));
  }
  if (!texts.empty()) check.found = fmt::format("{}", fmt::join(texts, ", "));
  const uint64_t used = state.used_bytes.value_or(0);
  const bool is_unexplained = used > named + kUnexplained;
  if (is_unexplained) {
    check.found = fmt::format("{}{} are in use by processes that are not shown here",
                              texts.empty() ? "" : check.found + "; ", format_bytes(used - named));
  }
  if (!texts.empty() || is_unexplained) {
    worsen(check, Health::kWarn,
           "They take its time and memory: nvidia-smi on the host shows them. End them, or choose "
           "other GPUs by CUDA_VISIBLE_DEVICES.");
  }
  return check;
}

std::string limit_text(uint64_t limits) {
  using cuda::ClockLimit;
  constexpr std::array<std::pair<uint64_t, const char*>, 8> kTexts = {{
      {ClockLimit::kClocksSet, "clocks that were set"},
      {ClockLimit::kPowerLimit, "the power limit"},
      {ClockLimit::kHardwareSlowdown, "a slowdown of the hardware"},
      {ClockLimit::kSyncBoost, "other GPUs of its group"},
      {ClockLimit::kSoftwareHeat, "heat"},
      {ClockLimit::kHardwareHeat, "heat (hardware)"},
      {ClockLimit::kPowerBrake, "the power supply's brake"},
      {ClockLimit::kDisplayClock, "a display"},
  }};
  std::vector<std::string> texts;
  for (const auto& [bit, text] : kTexts) {
    if ((limits & bit) != 0) texts.emplace_back(text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Judges a clock beside its maximum and adds it to what was found.
void add_clock(Check& check, const char* what, unsigned clock, std::optional<unsigned> most) {
  std::string text = fmt::format("{} {}", what, grouped(clock));
  if (most && *most > 0) {
    text += fmt::format(" of {}", grouped(*most));
    const double share = static_cast<double>(clock) / *most;
    if (share < 0.7) {
      worsen(check, share < 0.3 ? Health::kFail : Health::kWarn,
             "Its clocks are low: nvidia-smi -q -d CLOCK,PERFORMANCE tells the settings; "
             "nvidia-smi -rgc undoes locked ones.");
    }
  }
  add_part(check, text + " MHz");
}

}  // namespace

std::vector<Check> state_checks(const std::string& name, const DeviceState& state) {
  if (!state.reason.empty()) {
    if (state.is_lost) {
      return {{name + " state", Health::kFail, state.reason,
               "The GPU does not answer: see dmesg for its Xid, and reset it or the machine."}};
    }
    return {{name + " state", Health::kWarn, state.reason,
             "Clocks, memory errors and other processes cannot be seen. NVML "
             "(libnvidia-ml.so.1) comes with the driver; containers have it with "
             "NVIDIA_DRIVER_CAPABILITIES=compute,utility."}};
  }
  std::vector<Check> checks = {memory_errors(name, state), heat_and_power(name, state),
                               other_processes(name, state)};
  if (state.links_up + state.links_down > 0) {
    Check check{
        name + " NVLink", Health::kOk,
        fmt::format("{} of {} links are up", state.links_up, state.links_up + state.links_down),
        ""};
    if (state.links_up > 0 && state.links_down > 0) {
      worsen(check, Health::kWarn, "Some links are down: nvidia-smi nvlink -s names them.");
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

std::vector<Check> clock_check(const std::string& name, const DeviceState& working) {
  if (!working.clock_mhz) return {};
  constexpr uint64_t kTrouble =
      cuda::kHardwareSlowdown | cuda::kSoftwareHeat | cuda::kHardwareHeat | cuda::kPowerBrake;
  Check check{name + " clocks", Health::kOk, "", ""};
  const uint64_t limits = working.clock_limits.value_or(0);
  if ((limits & kTrouble) != 0) {
    worsen(check, Health::kWarn,
           "Heat or the power supply hold it back: look at fans, air and cables.");
  }
  add_clock(check, "processors", *working.clock_mhz, working.most_clock_mhz);
  if (working.memory_clock_mhz) {
    add_clock(check, "memory", *working.memory_clock_mhz, working.most_memory_clock_mhz);
  }
  check.found += " under load";
  if (const std::string text = limit_text(limits); !text.empty()) {
    check.found += "; held back by " + text;
  }
  return {check};
}

}  // namespace lockstep::launcher
