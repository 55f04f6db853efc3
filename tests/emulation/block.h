#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "tests/emulation/kernels.h"
#include "tests/emulation/vector_types.h"

namespace lockstep::emulation {

/// What a kernel did that no GPU finishes: it names kernel, block and threads.
class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kMostThreads = 1024;
inline constexpr size_t kMostSharedBytes = size_t{227} << 10;

struct Launch {
  const Kernel* kernel = nullptr;
  const void* parameters = nullptr;
  dim3 blocks;
  dim3 threads;
  size_t shared_bytes = 0;
};

/// Runs every thread of every block on the calling one, block after block. The threads of a block
/// take turns: one runs until it waits for others in a barrier or a warp function. Shared memory
/// begins as NaN. Blocks and threads start in ascending order; with
/// LOCKSTEP_EMULATED_ORDER=descending in the other, which shows what a kernel takes for granted.
/// One launch at a time. Throws LaunchError.
void run(const Launch& launch);

// What device code calls (device.h, warp.h), on a thread that `run` runs.

/// The function of CUDA that was called, and where.
struct Site {
  const char* function;
  const char* file;
  int line;
};

struct Arrivals {
  int count;  ///< of the threads that said yes
  bool any;
};
/// Waits for every thread of the block that has not returned.
Arrivals barrier(bool yes, const Site& site);

enum class Operation : uint8_t { kMeet, kVote, kShuffle };
/// Waits for those threads of the warp that are in `mask` and have not returned. A vote gives the
/// lanes whose value is not 0; a shuffle the value of lane `source`, NaN where that is not there.
uint64_t exchange(Operation operation, uint32_t mask, uint64_t value, int source, const Site& site);
/// Of the running thread in its warp.
int lane();

void* dynamic_shared_memory();

}  // namespace lockstep::emulation
