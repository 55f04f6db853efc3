#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/tensor/stream.h"

namespace lockstep {

/// What a stress test found wrong. Thread-safe.
class StressFindings {
 public:
  void add(std::string finding);
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// The first few.
  std::vector<std::string> first() const;

 private:
  std::atomic<int64_t> count_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> first_;
};

/// Contents of memory: 64-bit word i is start + i * step, and bytes after the last whole word are
/// the first ones of the next. Sums of patterns are patterns.
struct StressPattern {
  uint64_t start = 0;
  uint64_t step = 0;

  /// One that no other number gives.
  static StressPattern of(uint64_t number);
  friend StressPattern operator+(const StressPattern& a, const StressPattern& b) {
    return {a.start + b.start, a.step + b.step};
  }
  void write(void* data, size_t bytes) const;
  /// The first byte that differs; `bytes` when none does.
  size_t first_difference(const void* data, size_t bytes) const;
};

/// Queues the work of stress tests. On devices that run the cpu's kernels, by kernels and copies;
/// on `cpu`, where everything is done at once, by plain calls; elsewhere by copies alone. Memory is
/// the caller's to keep as any queued work needs it. Thread-safe; needs `findings` until the work
/// is done.
class StressWork {
 public:
  /// Throws DeviceError when there is no such device.
  StressWork(Device device, StressFindings& findings);

  /// Whether kernels can be had: `add`, and delays.
  bool has_kernels() const { return has_kernels_ || !has_streams_; }

  /// Writes a pattern, by a kernel that first sleeps for `delay_us`, or by a copy from the cpu.
  void fill(const Stream& stream, void* data, size_t bytes, const StressPattern& pattern,
            int delay_us = 0);
  void upload(const Stream& stream, void* data, size_t bytes, const StressPattern& pattern);
  /// to += from, word by word: their patterns' sum. Bytes after the last word stay as they are, so
  /// sizes should be whole words.
  void add(const Stream& stream, void* to, const void* from, size_t bytes);
  void copy(const Stream& stream, void* to, const void* from, size_t bytes);
  /// Reads the memory, by a kernel or by a copy to the cpu, and adds a finding, which names `what`,
  /// unless it has this pattern.
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
