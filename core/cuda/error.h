#pragma once

#include <string>

#include "core/cuda/driver.h"

namespace lockstep::cuda {

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string describe(const Driver& driver, CUresult result);
/// Whether the error makes the device unusable for this process: every later call returns it again.
bool is_sticky(CUresult result) noexcept;
/// What to do about the error, in sentences.
const char* advice(CUresult result) noexcept;
/// "[cuda] cuMemMap failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory). What to do."
std::string failure(const Driver& driver, CUresult result, const char* function);

/// Throws DeviceError with `failure` unless the call succeeded.
void check(const Driver& driver, CUresult result, const char* function);

/// Calls a function of the driver; throws DeviceError if it fails.
#define LS_CUDA(driver, function, ...) \
  ::lockstep::cuda::check((driver), (driver).function(__VA_ARGS__), #function)

}  // namespace lockstep::cuda
