#include "core/tensor/event.h"

#include <chrono>
#include <utility>

#include "core/base/check.h"
#include "core/base/spans/span.h"
#include "core/device/device_runtime.h"
#include "core/device/stream_sanitizer.h"

namespace lockstep {

namespace {

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

/// Tells the stream sanitizer that the wait ended, even if it throws a kernel's error.
struct EventDone {
  const void* event;
  ~EventDone() {
    if (stream_sanitizer::enabled()) stream_sanitizer::on_event_done(event);
  }
};

}  // namespace

Event::~Event() {
  if (native_ == nullptr) return;
  if (stream_sanitizer::enabled()) stream_sanitizer::on_event_destroyed(native_);
  device_runtime(stream_.device.type)->destroy_event(native_);
}

Event::Event(Event&& other) noexcept
    : native_(std::exchange(other.native_, nullptr)),
      stream_(std::exchange(other.stream_, {})),
      time_ms_(other.time_ms_),
      timing_(other.timing_),
      recorded_(std::exchange(other.recorded_, false)) {}

Event& Event::operator=(Event&& other) noexcept {
  const Event old(std::move(*this));
  native_ = std::exchange(other.native_, nullptr);
  stream_ = std::exchange(other.stream_, {});
  time_ms_ = other.time_ms_;
  timing_ = other.timing_;
  recorded_ = std::exchange(other.recorded_, false);
  return *this;
}

void Event::record(const Stream& stream) {
  LS_CHECK((native_ == nullptr && !recorded_) || stream_.device == stream.device, DeviceError,
           "[record] an event stays on its first device: expected {}, got {}. Make another event.",
           to_string(stream_.device), to_string(stream.device));
  DeviceRuntime* const runtime = find_runtime(stream.device);
  if (runtime == nullptr) {
    time_ms_ = now_ms();
  } else {
    if (native_ == nullptr) {
      native_ = runtime->create_event(stream.device.index, timing_);
      stream_ = stream;
    }
    runtime->record(native_, stream);
    if (stream_sanitizer::enabled()) stream_sanitizer::on_record(native_, stream);
  }
  stream_ = stream;
  recorded_ = true;
}

bool Event::query() const {
  if (native_ == nullptr || !recorded_) return true;
  const bool done = require_runtime(stream_.device).query(native_);
  if (done && stream_sanitizer::enabled()) stream_sanitizer::on_event_done(native_);
  return done;
}

void Event::synchronize() const {
  if (native_ == nullptr || !recorded_) return;
  const EventDone done{native_};
  const Span span(SpanKind::kWait, "wait for an event");
  require_runtime(stream_.device).synchronize(native_);
}

double Event::elapsed_ms(const Event& end) const {
  LS_CHECK(timing_ && end.timing_, DeviceError,
           "[elapsed_ms] an event kept no time: expected both to be made with timing.");
  LS_CHECK(recorded_ && end.recorded_, DeviceError,
           "[elapsed_ms] an event was never recorded: expected both to be.");
  LS_CHECK(stream_.device == end.stream_.device, DeviceError,
           "[elapsed_ms] the events are of different devices: {} and {}.",
           to_string(stream_.device), to_string(end.stream_.device));
  LS_CHECK(query() && end.query(), DeviceError,
           "[elapsed_ms] an event has not been reached: expected both to be. Call synchronize() "
           "of the later one first.");
  if (native_ == nullptr) return end.time_ms_ - time_ms_;
  return require_runtime(stream_.device).elapsed_ms(native_, end.native_);
}

}  // namespace lockstep
