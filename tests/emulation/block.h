#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "tests/emulation/kernels.h"
#include "tests/emulation/vector_types.h"

namespace lockstep::emulation {

/// A fault of a kernel that a GPU would not finish. Names kernel, block and threads.
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

/// Runs every thread of every block on the calling thread, one block after another. A thread of a
/// block runs until it waits for others in a barrier or a warp function. Shared memory starts as
/// NaN. Blocks and threads start in ascending order, or in descending order with
/// LOCKSTEP_EMULATED_ORDER=descending, which reveals kernels that depend on the order. One launch
/// at a time. Throws LaunchError.
void run(const Launch& launch);

// Called by device code (device.h, warp.h) on a thread started by `run`.

/// The CUDA function that was called, and its call site.
struct Site {
  const char* function;
  const char* file;
  int line;
};

struct Arrivals {
  int count;  ///< number of threads with a true predicate
  bool any;
};
/// Waits for every thread of the block that has not returned.
Arrivals barrier(bool yes, const Site& site);

enum class Operation : uint8_t { kMeet, kVote, kShuffle };
/// Waits for the threads of the warp in `mask` that have not returned. A vote returns the lanes
/// with a nonzero value; a shuffle the value of lane `source`, NaN if that lane is absent.
uint64_t exchange(Operation operation, uint32_t mask, uint64_t value, int source, const Site& site);
/// Lane of the running thread in its warp.
int lane();

void* dynamic_shared_memory();

}  // namespace lockstep::emulation
