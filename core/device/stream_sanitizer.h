#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/device/queued_kernel.h"
#include "core/tensor/stream.h"

namespace lockstep::stream_sanitizer {

namespace detail {
extern constinit std::atomic<bool> on;
}

/// Whether uses of memory are checked: LOCKSTEP_STREAM_SANITIZER=1, or `enable`.
///
/// The checker keeps a vector clock for each stream and for the program, moved by events, waits and
/// synchronisations, and for each piece of device memory who used it last. Two uses of the same
/// bytes, one of them a write, that no event orders are an error: it is reported when the second is
/// queued, and says both operators, both streams and the event, or the record_stream, that is
/// missing. What it misses: races that the threads of the program itself have. What it reports is
/// always one.
inline bool enabled() noexcept { return detail::on.load(std::memory_order_relaxed); }
/// Starts with empty books, or stops.
void enable(bool on);

/// Called with each report; the default throws a DeviceError out of the call that queued the second
/// use. An empty function brings the default back. Thread-safe.
void set_report_handler(std::function<void(const std::string& report)> handler);
/// Reports since `enable`.
int64_t reports();

// What the runtime's front tells the checker; only while `enabled()`.
void on_kernel(const Stream& stream, const QueuedKernel& kernel);
/// A tensor that a kernel reads or writes.
struct KernelAccess {
  const TensorArg* tensor;
  bool written;
};
void on_kernel(const Stream& stream, const OperatorName& op,
               std::span<const KernelAccess> accesses);
/// A use by something that is no kernel: a copy, a collective.
void on_use(const Stream& stream, const char* op, const void* address, size_t bytes, bool written);
void on_record(const void* event, const Stream& stream);
void on_wait(const Stream& stream, const void* event);
void on_event_done(const void* event);  ///< the program waited for it, or saw it done
void on_event_gone(const void* event);
void on_stream_done(const Stream& stream);
void on_device_done(Device device);
/// Memory changes hands: the books of the tenant before stay, for they still order its successor.
void on_allocate(const Stream& stream, const void* address, size_t bytes);
void on_free(const Stream& stream, const void* address, size_t bytes);
void on_record_stream(const void* address, const Stream& stream);

}  // namespace lockstep::stream_sanitizer
