#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

namespace lockstep::cuda {

/// The functions of the driver that are called here. Where cuda.h has several versions of a
/// function, the name is a macro for the newest, here and in all calls.
#define LS_CUDA_FUNCTIONS(X)       \
  X(cuInit)                        \
  X(cuDriverGetVersion)            \
  X(cuGetErrorName)                \
  X(cuGetErrorString)              \
  X(cuDeviceGetCount)              \
  X(cuDeviceGet)                   \
  X(cuDeviceGetName)               \
  X(cuDeviceGetAttribute)          \
  X(cuDeviceGetPCIBusId)           \
  X(cuDeviceGetUuid)               \
  X(cuDeviceCanAccessPeer)         \
  X(cuDeviceTotalMem)              \
  X(cuDevicePrimaryCtxRelease)     \
  X(cuDevicePrimaryCtxRetain)      \
  X(cuCtxEnablePeerAccess)         \
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
  X(cuMemcpyPeerAsync)             \
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

/// Table of the driver's functions. Nothing links with the driver: it is opened on first use, so
/// that programs start on machines without one, and tests can provide a table of their own.
struct Driver {
#define LS_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  LS_CUDA_FUNCTIONS(LS_CUDA_MEMBER)
#undef LS_CUDA_MEMBER
};

/// An initialised driver, or the reason why it cannot be used.
struct LoadedDriver {
  Driver functions;
  int devices = 0;     ///< number of devices; 0 if it cannot be used
  std::string reason;  ///< why it cannot be used, without a full stop; "" if it can
};

/// Opens a driver's library, which stays open until the process ends, and initialises it.
LoadedDriver load_driver(const char* library = "libcuda.so.1");
/// Initialises a driver; `load_driver` calls it. Rejects a driver that is older than the modules
/// that nvcc compiled.
LoadedDriver initialise(const Driver& functions);

/// Number of forks between the program's start and this process. A driver that was initialised at
/// another count does not work in this process.
uint32_t fork_count() noexcept;
/// The error text for that case, without a full stop.
inline constexpr const char* kForked =
    "this process was forked from one that had used CUDA, which does not work in the child. Fork "
    "before the first use of CUDA, or start the program anew (exec)";

}  // namespace lockstep::cuda
