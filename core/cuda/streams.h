#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "core/cuda/context.h"
#include "core/tensor/stream.h"

namespace lockstep::cuda {

/// The streams of one device by their numbers in core/tensor/stream.h. None of ours waits for the
/// driver's null stream. Functions throw DeviceError for a stream that there is not, or not any
/// more, and for what the driver refuses. Thread-safe.
class Streams {
 public:
  /// `context` must outlive it.
  explicit Streams(Context& context) : context_(context) {}
  /// Destroys them all, but for adopted ones.
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// Makes a pooled one when it is first asked for.
  CUstream get(int32_t id);
  /// Whether anything can be queued on it: false for a pooled one that nobody has asked for.
  bool exists(int32_t id);
  int priority(int32_t id);

  /// Numbers are never used again.
  int32_t create(int priority);
  /// A handle that was adopted before keeps its number. Null is the driver's null stream.
  int32_t adopt(CUstream native);
  /// Waits for its work and destroys it, or, if it was adopted, forgets it. Pooled ones stay.
  void destroy(int32_t id) noexcept;

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
  std::mutex mutex_;
  std::map<int32_t, Numbered> numbered_;
  int32_t next_ = kPooled;
};

}  // namespace lockstep::cuda
