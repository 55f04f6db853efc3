#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/call_stack.h"
#include "core/base/phase.h"
#include "core/memory/options.h"
#include "core/tensor/device.h"

namespace lockstep {

/// The code that allocated a block.
struct AllocationContext {
  const char* op = nullptr;  ///< operator that ran, or null
  std::string module;        ///< "h.3.attn", or "" outside modules
  CallStack stack;           ///< empty unless it was recorded
  Phase phase = Phase::kForward;
};

struct BlockInfo {
  enum class State : uint8_t { kActiveAllocated, kActivePendingFree, kInactive };

  uintptr_t address = 0;
  size_t size = 0;
  size_t requested_size = 0;
  State state = State::kInactive;
  AllocationContext context;
};

struct SegmentInfo {
  Device device;
  uintptr_t address = 0;
  size_t total_size = 0;
  size_t allocated_size = 0;
  size_t active_size = 0;
  size_t requested_size = 0;
  int32_t stream = 0;
  bool is_large = false;
  bool is_expandable = false;
  uint64_t pool = 0;              ///< 0: the default pool
  std::vector<BlockInfo> blocks;  ///< they tile the segment, by address
};

/// One event of an allocator's history.
struct TraceEntry {
  enum class Action : uint8_t {
    kAlloc,
    kFreeRequested,
    kFreeCompleted,
    kSegmentAlloc,
    kSegmentFree,
    kSegmentMap,
    kSegmentUnmap,
    kSnapshot,
    kOom,
    kUserDefined,
  };
  Action action = Action::kAlloc;
  uintptr_t address = 0;  ///< for kOom, the bytes still available on the device
  size_t size = 0;
  int32_t stream = 0;
  int64_t time_us = 0;  ///< since the epoch
  AllocationContext context;
  std::string label;  ///< of a kUserDefined entry
};
const char* name(TraceEntry::Action action);
const char* name(BlockInfo::State state);

/// The state of a device's allocator, and its history since recording was switched on.
struct MemorySnapshot {
  Device device;
  std::vector<SegmentInfo> segments;
  std::vector<TraceEntry> trace;  ///< oldest first
  AllocatorOptions options;
};

std::string to_json(const MemorySnapshot& snapshot);
/// A pickle (protocol 2) of the dictionary that torch.cuda.memory._snapshot() returns, which
/// PyTorch's memory viewer opens.
std::string to_pickle(const MemorySnapshot& snapshot);

}  // namespace lockstep
