#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/stream.h"

namespace lockstep {

/// Collects the findings of a stress test. Thread-safe.
class StressFindings {
 public:
  void add(std::string finding);
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// The first findings, at most 10.
  std::vector<std::string> first() const;

 private:
  std::atomic<int64_t> count_ = 0;
  mutable Mutex mutex_;
  std::vector<std::string> first_ LS_GUARDED_BY(mutex_);
};

/// A pattern of memory contents: 64-bit word i is start + i * step; bytes after the last whole word
/// are the first bytes of the next word. Sums of patterns are patterns.
struct StressPattern {
  uint64_t start = 0;
  uint64_t step = 0;

  /// A pattern that is different for each `number`.
  static StressPattern of(uint64_t number);
  friend StressPattern operator+(const StressPattern& a, const StressPattern& b) {
    return {a.start + b.start, a.step + b.step};
  }
  void write(void* data, size_t bytes) const;
  /// Offset of the first byte that differs from the pattern; `bytes` if none does.
  size_t first_difference(const void* data, size_t bytes) const;
};

/// Queues the work of stress tests: as kernels and copies on devices that run the cpu's kernels, as
/// plain calls on `cpu`, which is synchronous, and only as copies elsewhere. The caller must keep
/// memory allocated as for any queued work. Thread-safe; `findings` must exist until the work is
/// done.
class StressWork {
 public:
  /// Throws DeviceError if there is no such device.
  StressWork(Device device, StressFindings& findings);

  /// Whether kernels are available, which `add` and delays need.
  bool has_kernels() const { return has_kernels_ || !has_streams_; }

  /// Writes a pattern: `fill` by a kernel that first sleeps for `delay_us`, if there are kernels;
  /// `upload` by a copy from the cpu.
  void fill(const Stream& stream, void* data, size_t bytes, const StressPattern& pattern,
            int delay_us = 0);
  void upload(const Stream& stream, void* data, size_t bytes, const StressPattern& pattern);
  /// to += from, word by word, which adds their patterns. Bytes after the last word are unchanged,
  /// so sizes should be whole words.
  void add(const Stream& stream, void* to, const void* from, size_t bytes);
  void copy(const Stream& stream, void* to, const void* from, size_t bytes);
  /// Reads the memory, by a kernel or by a copy to the cpu, and adds a finding that names `what` if
  /// it does not have the pattern.
  void verify(const Stream& stream, const void* data, size_t bytes, const StressPattern& pattern,
              const std::string& what, int delay_us = 0);
  void download_and_verify(const Stream& stream, const void* data, size_t bytes,
                           const StressPattern& pattern, const std::string& what);

 private:
  StressFindings& findings_;
  bool has_streams_;
  bool has_kernels_;
};

}  // namespace lockstep
