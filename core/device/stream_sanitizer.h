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
/// The checker keeps a vector clock for each stream and for the program, advanced by events, waits
/// and synchronisations, and the last uses of each range of device memory. Two uses of the same
/// bytes, of which one is a write, that no event orders are an error. It is reported when the
/// second use is queued, with both operators, both streams and the missing event or record_stream.
/// It misses races between threads of the program. It never reports a false race.
inline bool enabled() noexcept { return detail::on.load(std::memory_order_relaxed); }
/// Starts checking with empty records, or stops.
void enable(bool on);

/// Sets the function that is called with each report. The default throws a DeviceError from the
/// call that queued the second use; an empty function restores it. Thread-safe.
void set_report_handler(std::function<void(const std::string& report)> handler);
/// Number of reports since `enable`.
int64_t reports();

// Notifications from the device layer; call only while `enabled()`.
void on_kernel(const Stream& stream, const QueuedKernel& kernel);
/// A tensor that a kernel reads or writes.
struct KernelAccess {
  const TensorArg* tensor;
  bool written;
};
void on_kernel(const Stream& stream, const OperatorName& op,
               std::span<const KernelAccess> accesses);
/// A use by something that is not a kernel: a copy, a collective.
void on_use(const Stream& stream, const char* op, const void* address, size_t bytes, bool written);
void on_record(const void* event, const Stream& stream);
void on_wait(const Stream& stream, const void* event);
void on_event_done(const void* event);  ///< the program waited for it, or saw it done
void on_event_destroyed(const void* event);
void on_stream_done(const Stream& stream);
void on_device_done(Device device);
/// The block is a new allocation. Uses of the earlier one are kept, for later uses must be ordered
/// after them.
void on_allocate(const Stream& stream, const void* address, size_t bytes);
void on_free(const Stream& stream, const void* address, size_t bytes);
void on_record_stream(const void* address, const Stream& stream);

}  // namespace lockstep::stream_sanitizer
