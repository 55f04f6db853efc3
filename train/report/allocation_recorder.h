#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/memory/allocation_trace.h"
#include "core/memory/caching_allocator.h"

namespace lockstep::train {

/// Records a program's allocator requests, for `lockstep bench allocator`. It clears and uses the
/// allocator's memory history, which no other code may use at the same time. Requests of all
/// streams go into one record.
class AllocationRecorder {
 public:
  /// Starts recording. `allocator` must outlive this object.
  explicit AllocationRecorder(CachingAllocator& allocator);
  /// Turns the allocator's history off.
  ~AllocationRecorder();
  AllocationRecorder(const AllocationRecorder&) = delete;
  AllocationRecorder& operator=(const AllocationRecorder&) = delete;

  /// Marks the beginning of a training step. The history is emptied here and holds some 10 million
  /// requests, so no more than that may come between two calls.
  void mark_step(int64_t step);
  /// Returns the recorded trace; call once, last.
  AllocationTrace take();
  /// Takes the trace and writes it to `file` atomically. Throws DataError.
  void write(const std::filesystem::path& file, const std::string& name);

 private:
  void drain();

  CachingAllocator& allocator_;
  AllocationTraceBuilder builder_;
};

}  // namespace lockstep::train
