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
#include "core/device/device_runtime.h"

namespace lockstep::cuda {

/// Streams, events, copies and memory of NVIDIA GPUs, through the driver. The driver is loaded when
/// a function is first called; where that fails there are no devices, and errors say why.
///
/// What a kernel does wrong the driver reports once and then at every call: the process cannot use
/// the device any more. Every function throws DeviceError for it, as for whatever else the driver
/// refuses. Nothing works in a process that was forked after the driver was loaded: there, too, are
/// no devices.
class Runtime final : public DeviceRuntime {
 public:
  using Loader = std::function<LoadedDriver()>;

  /// `load` is called once, by whichever thread comes first.
  explicit Runtime(Loader load);
  ~Runtime() override;

  /// Another loader, before anything was asked of this. Throws DeviceError where something was.
  void set_loader(Loader load);

  Availability availability();
  std::string why_unavailable() override { return availability().reason; }
  /// What a thread enters before it calls CUDA's other libraries.
  Context& context(int device);
  // Kernels; see core/cuda/launch.h.
  void launch_kernel(const Stream& stream, Kernel kernel, const LaunchShape& shape,
                     const void* parameters);
  void launch_kernel(const Stream& stream, const void* image, const char* kernel,
                     const LaunchShape& shape, std::span<const std::byte> parameters);
  /// Forgets what was loaded from these images, on every device that has.
  void unload(std::span<const void* const> images) noexcept;
  // Graphs; see core/cuda/graph.h.
  void begin_capture(const Stream& stream);
  /// Throws DeviceError when something was queued that cannot be recorded.
  CUgraphExec end_capture(const Stream& stream);
  /// Ends it without a graph.
  void drop_capture(const Stream& stream) noexcept;
  void launch_graph(const Stream& stream, CUgraphExec graph);
  void destroy_graph(int device, CUgraphExec graph) noexcept;

  /// What kernels of a device can note for the program.
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
  void add_callback(const Stream& stream, std::function<void()> callback) override;

 private:
  struct Parts;
  struct Loaded;

  /// Null in a process that was forked from the one that loaded.
  Loaded* loaded();
  Parts& parts(int device);
  Parts& parts(const Stream& stream) { return parts(stream.device.index); }
  /// Whether what is put on a stream is recorded. The driver must not be asked about its work then.
  static bool is_capturing(Parts& device, CUstream queue);
  static void launch_kernel(Parts& device, const Stream& stream, CUfunction kernel,
                            const LaunchShape& shape, const void* parameters);

  Loader load_;
  /// 0: not loaded. Else 2 (fork_count() + 1) of the process that loads, and 1 more when it has.
  /// One word, so that a forked process finds it whole.
  std::atomic<uint32_t> phase_ = 0;
  std::unique_ptr<Loaded> loaded_;
};

/// The one that serves the devices of this process.
Runtime& runtime();
/// The one that serves this device, in tests perhaps another. Throws DeviceError unless it is a
/// cuda device.
Runtime& runtime_of(Device device);

/// Gives `runtime()` a driver that is not the machine's: for tests and emulators, which call it
/// before main(). Throws DeviceError when something has asked for a device already.
void set_driver_loader(Runtime::Loader load);

}  // namespace lockstep::cuda
