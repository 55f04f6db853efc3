#pragma once

#include <cstdint>

#include "core/base/function_ref.h"

namespace lockstep {

/// Threads that kernels on this thread may use; at least 1. Default: the cores that the process may
/// run on. A rank's other threads have their own setting.
int num_threads();
/// Sets it for the calling thread. Values below 1 count as 1, those above 4096 as 4096.
void set_num_threads(int threads);

/// Calls `body(first, last)` on parts of [begin, end) that together cover it once, on up to
/// `num_threads()` threads, each part at least `grain` long save the last. How the range is cut
/// depends on the number of threads, so `body` must compute each index in the same way wherever the
/// cuts fall. Which thread runs a part depends on who is free (core/base/thread_pool.h). Returns
/// when all parts are done; the first exception is rethrown. Nested calls run on the calling
/// thread.
void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  FunctionRef<void(int64_t, int64_t)> body);

/// While alive, a library with OpenMP threads of its own (oneDNN) works on the calling thread
/// alone: it would compete with ours, and it sizes its blocks by the number of threads, and its
/// bits with them. It is so inside parallel_for too.
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
