#pragma once

// Launching from a kernel of Backend::kCUDA; part of core/plugin/plugin_wrapper.h.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/plugin/plugin_tensors.h"

// Hidden visibility: plug-ins in one process share none of these symbols, so each can be unloaded.
#pragma GCC visibility push(hidden)

namespace lockstep::plugin {

/// Grid and block dimensions of a launch.
struct Grid {
  uint32_t blocks = 1;
  uint32_t threads = 256;     ///< of each block
  uint32_t shared_bytes = 0;  ///< of dynamic shared memory
};

/// The GPU of a call, for kernels of Backend::kCUDA, which queue work and do not wait for it.
class Gpu {
 public:
  explicit Gpu(ls_call* call) : call_(call) {}

  int32_t device() const {
    int32_t device = 0;
    detail::check(detail::host->cuda_stream(call_, &device, nullptr));
    return device;
  }
  /// The CUstream that the work must be queued on, for use with the device's libraries.
  void* stream() const {
    void* stream = nullptr;
    detail::check(detail::host->cuda_stream(call_, nullptr, &stream));
    return stream;
  }
  /// Allocates scratch memory for `count` values; freed, in stream order, when the kernel returns.
  template <class T>
  T* scratch(size_t count) const {
    void* memory = nullptr;
    detail::check(detail::host->allocate(call_, count * sizeof(T), &memory));
    return static_cast<T*>(memory);
  }
  /// Copies `count` values from the device to the cpu after the work queued so far, and waits: for
  /// operators whose kernels make the results.
  template <class T>
  void read(T* to, const T* from, size_t count) const {
    detail::check(detail::host->read(call_, to, from, count * sizeof(T)));
  }
  /// Queues a kernel of a module; see `launch` of the ABI.
  template <class Parameters>
  void launch(const void* image, const char* kernel, const Grid& grid,
              const Parameters& parameters) const {
    static_assert(std::is_trivially_copyable_v<Parameters> && sizeof(Parameters) <= 4096,
                  "parameters are plain data of at most 4 KB");
    ls_launch_shape shape{};
    shape.size = sizeof(shape);
    shape.blocks[0] = grid.blocks;
    shape.threads[0] = grid.threads;
    shape.blocks[1] = shape.blocks[2] = shape.threads[1] = shape.threads[2] = 1;
    shape.shared_bytes = grid.shared_bytes;
    detail::check(
        detail::host->launch(call_, image, kernel, &shape, &parameters, sizeof(parameters)));
  }

 private:
  ls_call* call_;
};

}  // namespace lockstep::plugin

#pragma GCC visibility pop
