#include "launcher/memory_room.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string_view>

#include "core/base/check.h"
#include "core/base/control_groups.h"
#include "core/base/parallel.h"
#include "core/memory/cpu_memory.h"
#include "launcher/driver_memory.h"
#include "train/report/step_line.h"
#include "train/run/plan.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> first_number(const fs::path& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;  // missing, or "max"
  return number;
}

/// The number after `name` on the line of a file that starts with it.
uint64_t number_of(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    uint64_t number = 0;
    if (word == name && file >> number) return number;
  }
  return 0;
}

void narrow(MemoryRoom& room, uint64_t bytes, const std::string& source) {
  if (bytes < room.bytes) room = {bytes, source};
}

/// Bytes of `limit` that are not used, at least 0.
uint64_t left(uint64_t limit, uint64_t used) { return limit - std::min(used, limit); }

void narrow_to_groups(MemoryRoom& room, uint64_t processes, const fs::path& root) {
  for (const fs::path& group : control_groups(root, "memory")) {
    const fs::path statistics = group / "memory.stat";
    for (const auto& [limit_file, usage_file, prefix] :
         {std::array{"memory.max", "memory.current", ""},
          std::array{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"}}) {
      const auto limit = first_number(group / limit_file);
      if (!limit) continue;
      // File pages make room when memory is needed.
      const uint64_t used = left(first_number(group / usage_file).value_or(0),
                                 number_of(statistics, std::string(prefix) + "inactive_file") +
                                     number_of(statistics, std::string(prefix) + "active_file"));
      narrow(room, left(*limit, used) / processes,
             fmt::format("the control group's limit of {} ({})", train::format_bytes(*limit),
                         (group / limit_file).string()));
    }
  }
}

uint64_t thread_stacks(Device device) {
  rlimit stack{};
  uint64_t stack_bytes = uint64_t{8} << 20;
  if (::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY) {
    stack_bytes = stack.rlim_cur;
  }
  const uint64_t threads =
      static_cast<uint64_t>(num_threads()) + (device.type == DeviceType::kHost ? 8 : 2);
  return threads * stack_bytes;
}

/// Address space that training needs besides tensors: libraries that are loaded or compile code
/// later, stacks and heaps of the threads of kernels, streams and data. Measured with a small
/// model, with room to spare: oneDNN crashes where it gets none.
uint64_t address_space_of_program(Device device) {
  return (uint64_t{160} << 20) + thread_stacks(device);
}

/// As above, of memory that `ulimit -d` counts: not libraries, but stacks and oneDNN's buffers.
uint64_t data_of_program(Device device) { return (uint64_t{32} << 20) + thread_stacks(device); }

void narrow_to_limits(MemoryRoom& room, Device device, const fs::path& root) {
  const fs::path status = root / "proc/self/status";
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const uint64_t used = number_of(status, "VmSize:") << 10;
    const uint64_t program = address_space_of_program(device);
    narrow(room, std::min<uint64_t>(left(limit.rlim_cur, used + program), cpu_memory_total()),
           fmt::format("ulimit -v of {}, of which the program needs {}",
                       train::format_bytes(limit.rlim_cur), train::format_bytes(used + program)));
  }
  if (::getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const uint64_t used = number_of(status, "VmData:") << 10;
    const uint64_t program = data_of_program(device);
    narrow(room, left(limit.rlim_cur, used + program),
           fmt::format("ulimit -d of {}, of which the program needs {}",
                       train::format_bytes(limit.rlim_cur), train::format_bytes(used + program)));
  }
}

}  // namespace

MemoryRoom memory_room(Device device, int processes, const fs::path& root) {
  MemoryRoom room{UINT64_MAX, "nothing"};
  if (device.type != DeviceType::kCPU && device.type != DeviceType::kHost) return room;
  const auto shared_by = static_cast<uint64_t>(std::max(1, processes));
  const fs::path machine = root / "proc/meminfo";
  const uint64_t available = number_of(machine, "MemAvailable:") << 10;
  if (available > 0) {
    const uint64_t swap = number_of(machine, "SwapFree:") << 10;
    narrow(room, (available + swap) / shared_by, "free memory of the machine");
  }
  narrow_to_groups(room, shared_by, root);
  narrow_to_limits(room, device, root);
  if (device.type == DeviceType::kHost) {
    narrow(room, driver_memory(device).available(), "the budget of " + to_string(device));
  }
  return room;
}

void require_room(const train::RunPlan& plan, const MemoryRoom& room) {
  const auto needed = static_cast<uint64_t>(plan.peak_bytes);
  LS_CHECK(needed <= room.bytes, OutOfMemoryError,
           "[train] this run does not fit: `lockstep plan` says that it needs {} ({} bytes){}, and "
           "{} ({} bytes) are allowed by {}{}. Make the model or train.micro_batch_size smaller, "
           "allow more, or say --try-anyway.",
           train::format_bytes(needed), needed, plan.ranks == 1 ? "" : " in each rank",
           train::format_bytes(room.bytes), room.bytes, room.source,
           plan.ranks == 1 ? "" : ", shared with the ranks beside it");
}

}  // namespace lockstep::launcher
