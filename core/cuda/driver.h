#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

namespace lockstep::cuda {

/// The functions of the driver that are called here. Where cuda.h has several versions of one, the
/// name is a macro for the newest, here and wherever it is used.
#define LS_CUDA_FUNCTIONS(X)       \
  X(cuInit)                        \
  X(cuDriverGetVersion)            \
  X(cuGetErrorName)                \
  X(cuGetErrorString)              \
  X(cuDeviceGetCount)              \
  X(cuDeviceGet)                   \
  X(cuDeviceGetName)               \
  X(cuDeviceGetAttribute)          \
  X(cuDeviceTotalMem)              \
  X(cuDevicePrimaryCtxRelease)     \
  X(cuDevicePrimaryCtxRetain)      \
  X(cuCtxGetCurrent)               \
  X(cuCtxSetCurrent)               \
  X(cuCtxSynchronize)              \
  X(cuStreamBeginCapture)          \
  X(cuStreamCreateWithPriority)    \
  X(cuStreamDestroy)               \
  X(cuStreamEndCapture)            \
  X(cuStreamGetDevice)             \
  X(cuStreamGetPriority)           \
  X(cuStreamIsCapturing)           \
  X(cuStreamQuery)                 \
  X(cuStreamSynchronize)           \
  X(cuStreamWaitEvent)             \
  X(cuEventCreate)                 \
  X(cuEventDestroy)                \
  X(cuEventElapsedTime)            \
  X(cuEventQuery)                  \
  X(cuEventRecord)                 \
  X(cuEventSynchronize)            \
  X(cuMemAddressFree)              \
  X(cuMemAddressReserve)           \
  X(cuMemAlloc)                    \
  X(cuMemCreate)                   \
  X(cuMemFree)                     \
  X(cuMemFreeHost)                 \
  X(cuMemGetAllocationGranularity) \
  X(cuMemGetInfo)                  \
  X(cuMemHostAlloc)                \
  X(cuMemMap)                      \
  X(cuMemRelease)                  \
  X(cuMemSetAccess)                \
  X(cuMemUnmap)                    \
  X(cuMemcpyAsync)                 \
  X(cuMemsetD8Async)               \
  X(cuFuncGetAttribute)            \
  X(cuFuncGetParamInfo)            \
  X(cuFuncSetAttribute)            \
  X(cuGraphDestroy)                \
  X(cuGraphExecDestroy)            \
  X(cuGraphInstantiate)            \
  X(cuGraphLaunch)                 \
  X(cuLaunchHostFunc)              \
  X(cuLaunchKernel)                \
  X(cuModuleGetFunction)           \
  X(cuModuleLoadData)              \
  X(cuModuleUnload)

/// A driver's functions. Nothing is linked with the driver: it is opened when first needed, so that
/// programs start on machines without one, and tests bring a table of their own.
struct Driver {
#define LS_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  LS_CUDA_FUNCTIONS(LS_CUDA_MEMBER)
#undef LS_CUDA_MEMBER
};

/// A driver that has been initialised, or why it cannot be used.
struct LoadedDriver {
  Driver functions;
  int devices = 0;     ///< that it offers; 0 where it cannot be used
  std::string reason;  ///< why there is none, without a full stop; "" where there is one
};

/// Opens a driver's library, for as long as the process lives, and initialises it.
LoadedDriver load_driver(const char* library = "libcuda.so.1");
/// The second half of `load_driver`. A driver that is older than the modules that nvcc makes cannot
/// be used.
LoadedDriver initialise(const Driver& functions);

/// Number of forks between the program's start and this process: no driver that was initialised
/// at another count works here.
uint32_t fork_count() noexcept;
/// What to say then, without a full stop.
inline constexpr const char* kForked =
    "this process was forked from one that had used CUDA, which works in that one only. Fork "
    "before the first use of CUDA, or start the program anew (exec)";

}  // namespace lockstep::cuda
