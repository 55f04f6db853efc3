#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "core/base/mutex.h"
#include "core/cuda/context.h"
#include "core/tensor/stream.h"

namespace lockstep::cuda {

/// The streams of one device by their numbers in core/tensor/stream.h. None of them synchronizes
/// with the driver's null stream. Functions throw DeviceError for a stream that does not exist or
/// was destroyed, and for errors of the driver. Thread-safe.
class Streams {
 public:
  /// `context` must outlive it.
  explicit Streams(Context& context) : context_(context) {}
  /// Destroys all streams except adopted ones.
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// Returns the native stream; creates a pooled one on first use.
  CUstream get(int32_t id);
  /// Whether work may be queued on it: false for a pooled stream that was never used.
  bool exists(int32_t id);
  int priority(int32_t id);

  /// Creates a stream; numbers are never reused.
  int32_t create(int priority);
  /// Returns the same number for a handle that is adopted again. Null is the driver's null stream.
  int32_t adopt(CUstream native);
  /// Waits for the stream's work, then destroys it, or, if it was adopted, removes it. Pooled
  /// streams stay.
  void destroy(int32_t id) noexcept;

  /// Visits the streams that were made here. None of them is destroyed meanwhile.
  void each_own(const std::function<void(int32_t id, CUstream stream)>& visit);

 private:
  static constexpr int32_t kPooled = 1 + 2 * kPoolStreams;

  struct Numbered {
    CUstream native = nullptr;
    bool adopted = false;
  };

  CUstream make(int priority);
  Numbered numbered(int32_t id);
  void end(const Numbered& stream) noexcept;

  Context& context_;
  std::array<std::atomic<CUstream>, kPooled> pooled_{};
  Mutex mutex_;
  std::map<int32_t, Numbered> numbered_ LS_GUARDED_BY(mutex_);
  int32_t next_ LS_GUARDED_BY(mutex_) = kPooled;
};

}  // namespace lockstep::cuda
