#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/tensor/device.h"

namespace lockstep::train {
struct RunPlan;
}

namespace lockstep::launcher {

/// Memory that this process may still take for tensors.
struct MemoryRoom {
  uint64_t bytes = 0;
  std::string source;  ///< what sets this bound: "free memory of the machine", ...
};

/// The room for a run on `device`: the least of the machine's free memory with free swap, what the
/// control groups' limits leave (not counting file pages), `ulimit -v`, `ulimit -d`, and on host
/// devices their budget. `processes` like this one share the first two. Other devices than cpu and
/// host have memory of their own, and their room is unlimited here: UINT64_MAX. Reads /proc and
/// /sys under `root`, which tests replace.
MemoryRoom memory_room(Device device, int processes, const std::filesystem::path& root = "/");

/// Throws OutOfMemoryError, with both figures, if the plan's peak is larger than the room.
void require_room(const train::RunPlan& plan, const MemoryRoom& room);

}  // namespace lockstep::launcher
