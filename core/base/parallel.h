#pragma once

#include <cstdint>

#include "core/base/function_ref.h"

namespace lockstep {

/// Number of threads that kernels called on this thread may use; at least 1. Default: the number of
/// cores that the process may run on. A setting of each thread.
int num_threads();
/// Sets `num_threads` for the calling thread. Values below 1 count as 1, those above 4096 as 4096.
void set_num_threads(int threads);

/// Calls `body(first, last)` on parts that together cover [begin, end) exactly once, on up to
/// `num_threads()` threads; each part except the last is at least `grain` long. The cuts depend on
/// the number of threads, so `body` must compute each index in the same way wherever they fall.
/// Which thread runs a part depends on timing (core/base/thread_pool.h). Returns when all parts are
/// done; rethrows the first exception. Nested calls run on the calling thread.
void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  FunctionRef<void(int64_t, int64_t)> body);

/// While alive, limits a library with its own OpenMP threads (oneDNN) to the calling thread. Its
/// threads would compete with ours, and its block sizes, and so its rounding, depend on their
/// number. Always in effect inside parallel_for.
class LibraryOnOneThread {
 public:
  LibraryOnOneThread();
  ~LibraryOnOneThread();
  LibraryOnOneThread(const LibraryOnOneThread&) = delete;
  LibraryOnOneThread& operator=(const LibraryOnOneThread&) = delete;

 private:
  int before_ = 0;
};

}  // namespace lockstep
