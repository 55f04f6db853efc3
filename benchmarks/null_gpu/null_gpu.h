#pragma once

namespace lockstep {

/// Installs a CUDA device that does nothing: its driver and cuBLASLt accept every call at once,
/// kernels do not run, and device memory consists of addresses only. The time of an operation is
/// then its host cost. Call before the first use of a CUDA device. Throws DeviceError if called
/// later, or if the build has no CUDA.
void install_null_gpu();

}  // namespace lockstep
