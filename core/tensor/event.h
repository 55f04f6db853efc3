#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/stream.h"

namespace lockstep {

/// A mark in a stream: what was queued there before `record`. Recording again moves the mark; who
/// waits already keeps the mark that he saw. On `cpu` and `meta` every mark has been reached when
/// it is made.
///
/// Movable, not copyable; a moved-from Event is as one never recorded. One thread may record while
/// others wait, if they are ordered as reads and writes of any object must be.
class Event {
 public:
  /// `timing`: keep the time, for `elapsed_ms`.
  explicit Event(bool timing = false) noexcept : timing_(timing) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  /// Marks the work queued on `stream` so far. The first call decides the device: recording on
  /// another one later throws DeviceError.
  void record(const Stream& stream);
  /// Whether the marked work is done. True when never recorded.
  bool query() const;
  /// Blocks until it is.
  void synchronize() const;
  /// Milliseconds of device time from this mark to `end`. Throws DeviceError unless both were made
  /// with `timing`, recorded on one device and reached.
  double elapsed_ms(const Event& end) const;

  bool is_recorded() const noexcept { return recorded_; }
  bool has_timing() const noexcept { return timing_; }
  /// Of the last `record`.
  const Stream& stream() const noexcept { return stream_; }

 private:
  friend struct Stream;

  void* native_ = nullptr;  ///< the runtime's own; null until first recorded
  Stream stream_;
  double time_ms_ = 0;  ///< of the mark, on devices without a runtime
  bool timing_;
  bool recorded_ = false;
};

}  // namespace lockstep
