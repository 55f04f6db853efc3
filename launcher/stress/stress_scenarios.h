#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device_memory.h"
#include "core/memory/options.h"
#include "core/tensor/stream.h"

namespace lockstep {

/// Result of a scenario.
struct ScenarioReport {
  int64_t operations = 0;  ///< allocations and frees
  double seconds = 0;
  std::string measured;               ///< "reserved 24.0 MiB at 20.5 MiB on loan"
  std::vector<std::string> findings;  ///< violated promises

  bool passed() const { return findings.empty(); }
};

/// A scaled-down reproduction of a known failure of caching allocators, which must not occur here.
struct StressScenario {
  const char* name;
  const char* promise;
  bool is_of_streams;   ///< it is about several streams
  bool needs_granules;  ///< the promise holds only for expandable segments
  ScenarioReport (*run)(Device device, DeviceMemory& memory, const AllocatorOptions& options,
                        uint64_t seed);
};

std::span<const StressScenario> stress_scenarios();
/// Returns the scenario of that name, or null if there is none.
const StressScenario* find_stress_scenario(std::string_view name);

/// Runs a scenario on a separate caching allocator over a small part of `memory`, the device's.
/// Verifies the contents of blocks. OutOfMemoryError and other exceptions of the library are
/// findings.
ScenarioReport run_scenario(const StressScenario& scenario, Device device, DeviceMemory& memory,
                            const AllocatorOptions& options, uint64_t seed);

}  // namespace lockstep
