#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/cuda/kernel.h"
#include "core/tensor/stream.h"

namespace lockstep::cuda {

/// The grid of a launch.
struct LaunchShape {
  std::array<unsigned, 3> blocks = {1, 1, 1};
  unsigned threads = 256;     ///< of each block, in x
  unsigned shared_bytes = 0;  ///< that the kernel takes as dynamic_shared
  unsigned threads_y = 1;
  unsigned threads_z = 1;
};

/// Queues a kernel on `stream`. `parameters` is the one struct that it takes; it is read before
/// this returns. Throws DeviceError, also for a kernel that is in none of its modules and for a
/// stream of another type of device.
void launch(const Stream& stream, Kernel kernel, const LaunchShape& shape, const void* parameters);

/// For kernels and images of other libraries: the same, but throws DeviceError, too, unless the
/// kernel takes one parameter, of the size of `parameters`.
void launch(const Stream& stream, const void* image, const char* kernel, const LaunchShape& shape,
            std::span<const std::byte> parameters);
/// Forgets what was loaded from these images, which may go then; waits for the devices' work.
void unload(std::span<const void* const> images) noexcept;

}  // namespace lockstep::cuda
