#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/memory/allocation_trace.h"
#include "core/memory/caching_allocator.h"

namespace lockstep::train {

/// Records what a program asks of an allocator, for `lockstep bench allocator`. It uses the
/// allocator's history, which it starts anew; nobody else should meanwhile. Requests are recorded
/// for all streams together.
class AllocationRecorder {
 public:
  /// Starts. `allocator` must outlive it.
  explicit AllocationRecorder(CachingAllocator& allocator);
  /// Switches the history off.
  ~AllocationRecorder();
  AllocationRecorder(const AllocationRecorder&) = delete;
  AllocationRecorder& operator=(const AllocationRecorder&) = delete;

  /// Says that a training step begins. Between two calls, the program may make some 10 million
  /// requests.
  void mark_step(int64_t step);
  /// What was recorded so far; call once, last.
  AllocationTrace take();
  /// The same, as a file that appears whole or not at all. Throws DataError.
  void write(const std::filesystem::path& file, const std::string& name);

 private:
  void drain();

  CachingAllocator& allocator_;
  AllocationTraceBuilder builder_;
};

}  // namespace lockstep::train
