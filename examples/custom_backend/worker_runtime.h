#pragma once

#include <lockstep/lockstep.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/device/device_memory.h"
#include "core/device/device_runtime.h"
#include "worker_stream.h"

namespace worker {

/// Memory of the device: a budget of the cpu's memory, which the cpu's kernels can address. The
/// library puts its caching allocator on top. Thread-safe.
class WorkerMemory final : public lockstep::DeviceMemory {
 public:
  explicit WorkerMemory(size_t budget) : budget_(budget) {}

  size_t total() const override { return budget_; }
  size_t available() const override { return budget_ - used_; }
  void* allocate(size_t bytes) noexcept override;
  void release(void* address, size_t bytes) noexcept override;

  // This device cannot map memory separately from addresses, so none of these is called.
  size_t granularity() const override { return 0; }
  void* reserve(size_t) noexcept override { return nullptr; }
  void unreserve(void*, size_t) noexcept override {}
  bool create(std::span<lockstep::Granule>) noexcept override { return false; }
  void destroy(std::span<const lockstep::Granule>) noexcept override {}
  bool map(void*, std::span<const lockstep::Granule>) noexcept override { return false; }
  void unmap(void*, size_t) noexcept override {}

  void* allocate_pinned(size_t bytes) noexcept override;
  void release_pinned(void* address, size_t bytes) noexcept override;

 private:
  const size_t budget_;
  std::atomic<size_t> used_{0};
};

/// Streams and events of one device, worker:0. A stream is a queue with its own thread; an event is
/// a position in a queue. A kernel's error is thrown by the next synchronization with its stream.
/// After fork() the child, which has no worker threads, has no device. Thread-safe.
class WorkerRuntime final : public lockstep::DeviceRuntime {
 public:
  explicit WorkerRuntime(lockstep::DeviceType type);

  int device_count() override;
  std::string why_unavailable() override;
  lockstep::DeviceMemory& memory(int) override { return memory_; }

  lockstep::Stream create_stream(int device, int priority) override;
  lockstep::Stream adopt_stream(int device, void* native) override;
  void destroy_stream(const lockstep::Stream& stream) noexcept override;
  int priority(const lockstep::Stream& stream) override;
  void* native(const lockstep::Stream& stream) override;
  bool query(const lockstep::Stream& stream) override;
  void synchronize(const lockstep::Stream& stream) override;
  void synchronize(int device) override;

  void* create_event(int device, bool timing) override;
  void destroy_event(void* event) noexcept override;
  void record(void* event, const lockstep::Stream& stream) override;
  void wait(const lockstep::Stream& stream, void* event) override;
  bool query(void* event) override;
  void synchronize(void* event) override;
  double elapsed_ms(void* start, void* end) override;

  void copy(const lockstep::Stream& stream, void* to, const void* from, size_t bytes,
            lockstep::Transfer direction) override;
  void add_callback(const lockstep::Stream& stream, std::function<void()> callback) override;
  bool runs_cpu_kernels() const override { return true; }
  void launch(const lockstep::Stream& stream,
              std::unique_ptr<lockstep::QueuedKernel> kernel) override;
  void set_kernel_threads(int threads) override { kernel_threads_ = threads; }

  /// Waits for the work of all streams; their errors stay unreported.
  void finish();
  /// Kernels that the streams have run.
  int64_t kernels() const { return kernels_; }

 private:
  /// Streams 0 to 2 * kPoolStreams always exist; the others until they are destroyed.
  static constexpr int32_t kFixed = 1 + 2 * lockstep::kPoolStreams;

  std::shared_ptr<WorkerStream> find(const lockstep::Stream& stream);
  std::vector<std::shared_ptr<WorkerStream>> streams();

  const lockstep::DeviceType type_;
  WorkerMemory memory_;
  std::atomic<int> kernel_threads_{1};
  std::atomic<int64_t> kernels_{0};
  lockstep::Mutex mutex_;
  std::map<int32_t, std::shared_ptr<WorkerStream>> streams_ LS_GUARDED_BY(mutex_);
  int32_t next_id_ LS_GUARDED_BY(mutex_) = kFixed;
  std::exception_ptr lost_error_ LS_GUARDED_BY(mutex_);
};

}  // namespace worker
