#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/device/device_runtime.h"
#include "kernels/host/host_device.h"
#include "kernels/host/host_memory.h"
#include "kernels/host/host_stream.h"

namespace lockstep::host {

/// Number of threads that each kernel on a host device may use.
int kernel_threads();

/// The streams of one device. Thread-safe.
class HostDevice {
 public:
  explicit HostDevice(int index) : index_(static_cast<int8_t>(index)) {}

  KernelGate& gate() { return gate_; }
  /// Returns the memory; the first call creates it.
  HostMemory& memory(const HostOptions& options);
  /// Returns the memory, or null if it was not created yet.
  HostMemory* memory() { return memory_.load(std::memory_order_acquire); }

  /// Throws DeviceError if there is no such stream.
  Ref<HostStream> find(int32_t id);
  Stream create(int priority);
  /// Waits for the stream's work. An error that was not reported is kept as the device's.
  void destroy(int32_t id);
  void synchronize();
  /// Whether its memory or a stream was ever used.
  bool is_used();

  // For fork handlers. The child has no workers: queued work is dropped, and streams start anew.
  void lock();
  void unlock();
  void reset_after_fork();
  /// Whether a worker is inside a task.
  bool is_running();

 private:
  struct Owned {
    int priority = 0;
    Ref<HostStream> stream;  ///< empty until used
  };
  static constexpr int32_t kFixed = 1 + 2 * kPoolStreams;

  Ref<HostStream> make(int32_t id, int priority);
  Ref<HostStream> find_owned(int32_t id);
  /// All streams that were used.
  std::vector<Ref<HostStream>> streams();

  const int8_t index_;
  KernelGate gate_;
  std::atomic<HostMemory*> memory_ = nullptr;
  std::array<std::atomic<HostStream*>, kFixed> fixed_{};
  Mutex mutex_;
  std::map<int32_t, Owned> owned_ LS_GUARDED_BY(mutex_);
  int32_t next_id_ LS_GUARDED_BY(mutex_) = kFixed;
  std::exception_ptr lost_error_ LS_GUARDED_BY(mutex_);
};

/// The runtime of all host devices: one for the process, registered before main().
///
/// A stream is a queue with its own thread; an event without timing is a position in the queue. A
/// kernel's error is kept by its stream until the next synchronization; a destroyed stream passes
/// it to the device's next synchronize. A child made by fork() starts with idle streams: work
/// queued in the parent counts as done there, without having run.
class HostRuntime final : public DeviceRuntime {
 public:
  HostRuntime();

  int device_count() override;
  DeviceMemory& memory(int device) override;

  Stream create_stream(int device, int priority) override;
  Stream adopt_stream(int device, void* native) override;
  void destroy_stream(const Stream& stream) noexcept override;
  int priority(const Stream& stream) override;
  void* native(const Stream& stream) override;
  bool query(const Stream& stream) override;
  void synchronize(const Stream& stream) override;
  void synchronize(int device) override;

  void* create_event(int device, bool timing) override;
  void destroy_event(void* event) noexcept override;
  void record(void* event, const Stream& stream) override;
  void wait(const Stream& stream, void* event) override;
  bool query(void* event) override;
  void synchronize(void* event) override;
  double elapsed_ms(void* start, void* end) override;

  void copy(const Stream& stream, void* to, const void* from, size_t bytes,
            Transfer direction) override;
  void add_callback(const Stream& stream, std::function<void()> callback) override;
  bool runs_cpu_kernels() const override { return true; }
  void launch(const Stream& stream, std::unique_ptr<QueuedKernel> kernel) override;

  void set_kernel_threads(int threads) override;

  HostOptions options();
  void set_options(const HostOptions& options);

  void lock();
  void unlock();
  void reset_after_fork();
  bool is_running();

 private:
  HostDevice& device(int index);
  HostDevice& device(const Stream& stream) { return device(stream.device.index); }
  Ref<HostStream> find(const Stream& stream) { return device(stream).find(stream.id); }
  /// Reads the options from the environment unless they are set.
  void ensure_options();
  void adopt(const HostOptions& options) LS_REQUIRES(mutex_);

  std::array<std::unique_ptr<HostDevice>, kMaxDevices> devices_;
  std::atomic<int> device_count_ = 0;  ///< 0: options not read yet
  Mutex mutex_;
  HostOptions options_ LS_GUARDED_BY(mutex_);
  // Copies of options that are read without the lock.
  std::atomic<double> copy_latency_s_ = 0;
  std::atomic<double> copy_s_per_byte_ = 0;
  std::atomic<bool> call_stacks_ = false;
};

}  // namespace lockstep::host
