#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/cuda/availability.h"
#include "core/cuda/context.h"
#include "core/cuda/driver.h"
#include "core/cuda/faults.h"
#include "core/cuda/launch.h"
#include "core/cuda/stream_marks.h"
#include "core/device/device_runtime.h"

namespace lockstep::cuda {

/// Streams, events, copies and memory of NVIDIA GPUs, through the driver API. The first call loads
/// the driver; if that fails there are no devices, and errors give the reason.
///
/// After a kernel's error the driver fails every later call: the process cannot use the device any
/// more. Every function throws DeviceError for this, as for any other failure of the driver. In a
/// process forked after the driver was loaded there are no devices, either.
class Runtime final : public DeviceRuntime {
 public:
  using Loader = std::function<LoadedDriver()>;

  /// `load` is called once, by the first thread that needs the driver.
  explicit Runtime(Loader load);
  ~Runtime() override;

  /// Replaces the loader. Throws DeviceError if the driver has been loaded already.
  void set_loader(Loader load);

  Availability availability();
  std::string why_unavailable() override { return availability().reason; }
  bool needs_pinned_memory() const override { return true; }
  /// The device's context, to make current before calling other CUDA libraries.
  Context& context(int device);
  // Kernels; see core/cuda/launch.h.
  void launch_kernel(const Stream& stream, Kernel kernel, const LaunchShape& shape,
                     const void* parameters);
  void launch_kernel(const Stream& stream, const void* image, const char* kernel,
                     const LaunchShape& shape, std::span<const std::byte> parameters);
  /// Unloads the modules of these images on every device.
  void unload(std::span<const void* const> images) noexcept;
  // Graphs; see core/cuda/graph.h.
  void begin_capture(const Stream& stream);
  /// Throws DeviceError if something was queued that cannot be recorded.
  CUgraphExec end_capture(const Stream& stream);
  /// Ends the capture without a graph.
  void drop_capture(const Stream& stream) noexcept;
  void launch_graph(const Stream& stream, CUgraphExec graph);
  void destroy_graph(int device, CUgraphExec graph) noexcept;

  // Peers; see core/cuda/peer.h.
  bool reaches_peer(int device, int peer);
  void open_peer(int device, int peer);

  /// Looks which marks on the device's streams were reached, and marks what is queued now, unless a
  /// graph is being captured. By one thread at a time.
  StreamMarks::Look look_at_marks(int device);

  /// Invalid elements that kernels of a device recorded.
  Faults& faults(int device);

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
  /// By cuMemcpyPeerAsync. The first copy between two devices opens the memory of each to the other
  /// where the machine can, so that copies need not go through the memory of the cpu.
  void copy_between(const Stream& stream, void* to, Device to_device, const void* from,
                    Device from_device, size_t bytes) override;
  void add_callback(const Stream& stream, std::function<void()> callback) override;

 private:
  struct Parts;
  struct Loaded;

  /// The loaded state; null in a process that was forked from the one that loaded it.
  Loaded* loaded();
  Parts& parts(int device);
  Parts& parts(const Stream& stream) { return parts(stream.device.index); }
  /// Whether work queued on the stream is being captured; then the driver must not be queried about
  /// it.
  static bool is_capturing(Parts& device, CUstream queue);
  /// Opens the memory of two devices to each other when first called for them.
  void open_each_other(int device, int peer);
  static void launch_kernel(Parts& device, const Stream& stream, CUfunction kernel,
                            const LaunchShape& shape, const void* parameters);

  Loader load_;
  /// 0: not loaded. Otherwise 2 * (fork_count() + 1) of the loading process, plus 1 once it is
  /// loaded. A single word, so that a forked process reads a consistent value.
  std::atomic<uint32_t> phase_ = 0;
  std::unique_ptr<Loaded> loaded_;
};

/// The runtime that serves the devices of this process.
Runtime& runtime();
/// The runtime that serves this device; tests may use another one. Throws DeviceError unless it is
/// a cuda device.
Runtime& runtime_of(Device device);

/// Makes `runtime()` use another driver than the machine's: for tests and emulators, which call it
/// before main(). Throws DeviceError if the driver has been loaded already.
void set_driver_loader(Runtime::Loader load);

}  // namespace lockstep::cuda
