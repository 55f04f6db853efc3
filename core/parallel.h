#pragma once

#include <cstdint>

#include "core/function_ref.h"

namespace lockstep {

/// Threads that kernels on this thread may use; at least 1. Default: the cores that the process
/// may run on. A rank's other threads have their own setting.
int num_threads();
/// Sets it for the calling thread. Values below 1 count as 1.
void set_num_threads(int threads);

/// Calls `body(first, last)` on parts of [begin, end) that together cover it once, on up to
/// `num_threads()` threads, each part at least `grain` long save the last. How the range is cut
/// depends on the number of threads, so `body` must compute each index in the same way wherever
/// the cuts fall. Returns when all parts are done; the first exception is rethrown. Nested calls
/// run on the calling thread.
void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  FunctionRef<void(int64_t, int64_t)> body);

/// While alive, a library that shares our thread runtime (oneDNN) works on the calling thread
/// alone. Inside parallel_for it does so by itself, but sizes its blocks by the runtime's setting
/// all the same, and its bits with them.
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
