#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/cuda/kernel.h"
#include "core/tensor/stream.h"

namespace lockstep::cuda {

/// Grid and block dimensions of a launch.
struct LaunchShape {
  std::array<unsigned, 3> blocks = {1, 1, 1};
  unsigned threads = 256;     ///< threads of a block in x
  unsigned shared_bytes = 0;  ///< size of dynamic_shared in bytes
  unsigned threads_y = 1;
  unsigned threads_z = 1;
};

/// Queues a kernel on `stream`. `parameters` points to its one struct, which is copied before this
/// returns. Throws DeviceError, also if no module has the kernel or the stream is not on a cuda
/// device.
void launch(const Stream& stream, Kernel kernel, const LaunchShape& shape, const void* parameters);

/// Queues a kernel of an image that a plugin brought. Also throws DeviceError unless the kernel
/// takes one parameter of the size of `parameters`.
void launch(const Stream& stream, const void* image, const char* kernel, const LaunchShape& shape,
            std::span<const std::byte> parameters);
/// Unloads the modules of these images, which may then be freed; waits for the devices' work.
void unload(std::span<const void* const> images) noexcept;

}  // namespace lockstep::cuda
