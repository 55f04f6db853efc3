#pragma once

#include <cstdint>

#include "core/memory/caching_allocator.h"
#include "train/report/run_directory.h"

namespace lockstep::config {
class MemoryConfig;
}

namespace lockstep::train {

/// Applies a run's memory config to the device's caching allocator for this object's lifetime, and
/// records the memory history until the step that the config names. Steps count from 1.
class RunMemory {
 public:
  /// Construct before the model, so that its parameters are in the record. Throws ConfigError for
  /// invalid options, and for any option if the device's backend brings an allocator of its own.
  RunMemory(const config::MemoryConfig& config, Device device, const RunDirectory& directory);
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  /// Whether all work of a step must happen between begin_step and end_step, so that the next step
  /// must not be begun ahead.
  bool wants_whole_steps() const { return planned_ || recording_; }
  void begin_step(int64_t step);
  /// After the step to be recorded, writes memory.txt, memory.json and memory.pickle and stops
  /// recording. Throws DataError if they cannot be written.
  void end_step(int64_t step);

 private:
  void stop_recording();

  CachingAllocator* allocator_;  ///< null if the backend brings its own
  RunDirectory directory_;
  AllocatorOptions options_before_;
  int64_t snapshot_step_;
  bool planned_;
  bool recording_ = false;
};

}  // namespace lockstep::train
