#pragma once

namespace lockstep {

/// Gives the process one cuda device that does nothing: its driver and its cuBLASLt accept every
/// call at once, kernels do not run, and memory has addresses only. What is left of an operation is
/// what it costs the host. Call before the first use of a cuda device. Throws DeviceError when it
/// is too late, and where the build has no CUDA.
void install_null_gpu();

}  // namespace lockstep
