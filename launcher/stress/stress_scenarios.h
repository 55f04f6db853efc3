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

/// What came of a scenario.
struct ScenarioReport {
  int64_t operations = 0;  ///< allocations and frees
  double seconds = 0;
  std::string measured;               ///< "reserved 24.0 MiB at 20.5 MiB on loan"
  std::vector<std::string> findings;  ///< promises that were not kept

  bool passed() const { return findings.empty(); }
};

/// A known failure of caching allocators, scaled down, that must not happen here.
struct StressScenario {
  const char* name;
  const char* promise;
  bool needs_granules;  ///< the promise holds for expandable segments alone
  ScenarioReport (*run)(Device device, DeviceMemory& memory, const AllocatorOptions& options,
                        uint64_t seed);
};

std::span<const StressScenario> stress_scenarios();
/// Null when there is none of this name.
const StressScenario* find_stress_scenario(std::string_view name);

/// Runs it on a caching allocator of its own, over a small part of `memory`, the device's. Contents
/// of blocks are verified on the way. Out of memory, and what else the library throws, is a
/// finding.
ScenarioReport run_scenario(const StressScenario& scenario, Device device, DeviceMemory& memory,
                            const AllocatorOptions& options, uint64_t seed);

}  // namespace lockstep
