#pragma once

#include <cstdint>

#include "core/memory/caching_allocator.h"
#include "train/report/run_directory.h"

namespace lockstep::config {
class MemoryConfig;
}

namespace lockstep::train {

/// While alive, the device's caching allocator is as a run's config wants it, and what happens to
/// memory is recorded until the step that the config names. Steps count from 1.
class RunMemory {
 public:
  /// Before the model is made, so that its parameters are in the record. Throws ConfigError for
  /// options that do not fit, DeviceError where the device has no caching allocator.
  RunMemory(const config::MemoryConfig& config, Device device, const RunDirectory& directory);
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  /// Whether what a step does must happen between its beginning and its end.
  bool wants_whole_steps() const { return planned_ || recording_; }
  void begin_step(int64_t step);
  /// After the step to be recorded: writes memory.txt, memory.json and memory.pickle, and stops
  /// recording.
  /// Throws DataError when they cannot be written.
  void end_step(int64_t step);

 private:
  void stop_recording();

  CachingAllocator& allocator_;
  RunDirectory directory_;
  AllocatorOptions options_before_;
  int64_t snapshot_step_;
  bool planned_;
  bool recording_ = false;
};

}  // namespace lockstep::train
