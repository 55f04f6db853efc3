#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/stream.h"

namespace lockstep {

/// Marks the work queued on a stream before `record`. Recording again moves the mark; waits already
/// made keep the earlier mark. On `cpu` and `meta` a mark is reached as soon as it is made.
///
/// Movable, not copyable; a moved-from Event is like one never recorded. Concurrent `record` and
/// waits need the same synchronization as a write and reads of any object.
class Event {
 public:
  /// With `timing`, records times for `elapsed_ms`.
  explicit Event(bool timing = false) noexcept : timing_(timing) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  /// Marks the work queued on `stream` so far. The first call fixes the device: recording on
  /// another one later throws DeviceError.
  void record(const Stream& stream);
  /// Whether the marked work is done. True if never recorded.
  bool query() const;
  /// Blocks until the marked work is done.
  void synchronize() const;
  /// Returns the milliseconds of device time from this mark to `end`. Throws DeviceError unless
  /// both were made with `timing`, recorded on one device and reached.
  double elapsed_ms(const Event& end) const;

  bool is_recorded() const noexcept { return recorded_; }
  bool has_timing() const noexcept { return timing_; }
  /// The stream of the last `record`.
  const Stream& stream() const noexcept { return stream_; }

 private:
  friend struct Stream;

  void* native_ = nullptr;  ///< the runtime's handle; null until first recorded
  Stream stream_;
  double time_ms_ = 0;  ///< time of the mark, on devices without a runtime
  bool timing_;
  bool recorded_ = false;
};

}  // namespace lockstep
