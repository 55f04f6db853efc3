#include "benchmarks/null_gpu/null_gpu.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/cuda/cublas_lt.h"
#include "core/cuda/runtime.h"

namespace lockstep {

namespace {

constexpr size_t kGranule = size_t{2} << 20;
constexpr size_t kMemory = size_t{64} << 30;

constinit std::atomic<uint64_t> g_next = 1;  ///< next handle
constinit std::atomic<CUdeviceptr> g_free = CUdeviceptr{1} << 40;

/// A driver function that does nothing and returns success.
template <class F>
struct Nothing;
template <class R, class... A>
struct Nothing<R (*)(A...)> {
  static R call(A...) { return R{}; }
};

template <class Handle>
Handle new_handle() {
  return reinterpret_cast<Handle>(g_next.fetch_add(1));
}
CUdeviceptr take_addresses(size_t bytes) {
  return g_free.fetch_add((bytes + kGranule - 1) / kGranule * kGranule);
}

CUcontext the_context() { return reinterpret_cast<CUcontext>(&g_next); }

cuda::Driver null_driver() {
  cuda::Driver driver;
#define LS_NOTHING(name) driver.name = &Nothing<decltype(driver.name)>::call;
  LS_CUDA_FUNCTIONS(LS_NOTHING)
#undef LS_NOTHING
  driver.cuDriverGetVersion = [](int* version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetCount = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGet = [](CUdevice* device, int index) {
    *device = index;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetName = [](char* name, int size, CUdevice) {
    std::strncpy(name, "null", static_cast<size_t>(size));
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute, CUdevice) {
    *value = 1;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceTotalMem = [](size_t* bytes, CUdevice) {
    *bytes = kMemory;
    return CUDA_SUCCESS;
  };
  driver.cuMemGetInfo = [](size_t* free, size_t* total) {
    *free = *total = kMemory;
    return CUDA_SUCCESS;
  };
  driver.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    *context = the_context();
    return CUDA_SUCCESS;
  };
  driver.cuCtxGetCurrent = [](CUcontext* context) {
    *context = the_context();
    return CUDA_SUCCESS;
  };
  driver.cuStreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
    *stream = new_handle<CUstream>();
    return CUDA_SUCCESS;
  };
  driver.cuEventCreate = [](CUevent* event, unsigned) {
    *event = new_handle<CUevent>();
    return CUDA_SUCCESS;
  };
  driver.cuMemGetAllocationGranularity = [](size_t* bytes, const CUmemAllocationProp*,
                                            CUmemAllocationGranularity_flags) {
    *bytes = kGranule;
    return CUDA_SUCCESS;
  };
  driver.cuMemAddressReserve = [](CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                                  unsigned long long) {
    *address = take_addresses(bytes);
    return CUDA_SUCCESS;
  };
  driver.cuMemAlloc = [](CUdeviceptr* address, size_t bytes) {
    *address = take_addresses(bytes);
    return CUDA_SUCCESS;
  };
  driver.cuMemCreate = [](CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp*,
                          unsigned long long) {
    *handle = g_next.fetch_add(1);
    return CUDA_SUCCESS;
  };
  driver.cuMemHostAlloc = [](void** memory, size_t bytes, unsigned) {
    *memory = std::calloc(1, bytes);  // host memory is really accessed
    return *memory != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  };
  driver.cuMemFreeHost = [](void* memory) {
    std::free(memory);
    return CUDA_SUCCESS;
  };
  driver.cuModuleLoadData = [](CUmodule* module, const void*) {
    *module = new_handle<CUmodule>();
    return CUDA_SUCCESS;
  };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    *function = new_handle<CUfunction>();
    return CUDA_SUCCESS;
  };
  driver.cuStreamEndCapture = [](CUstream, CUgraph* graph) {
    *graph = new_handle<CUgraph>();
    return CUDA_SUCCESS;
  };
  driver.cuGraphInstantiate = [](CUgraphExec* executable, CUgraph, unsigned long long) {
    *executable = new_handle<CUgraphExec>();
    return CUDA_SUCCESS;
  };
  return driver;
}

cuda::LoadedCublasLt null_cublas_lt() {
  cuda::LoadedCublasLt loaded;
  cuda::CublasLt& lt = loaded.functions;
#define LS_NOTHING(name) lt.name = &Nothing<decltype(lt.name)>::call;
  LS_CUBLAS_LT_FUNCTIONS(LS_NOTHING)
#undef LS_NOTHING
  lt.cublasLtCreate = [](cublasLtHandle_t* handle) {
    *handle = new_handle<cublasLtHandle_t>();
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.cublasLtMatmulAlgoGetHeuristic =
      [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
         cublasLtMatmulHeuristicResult_t* results, int* found) {
        results[0] = {};
        *found = 1;
        return CUBLAS_STATUS_SUCCESS;
      };
  return loaded;
}

}  // namespace

void install_null_gpu() {
  cuda::set_driver_loader([] { return cuda::initialise(null_driver()); });
  cuda::set_cublas_lt(*new cuda::CublasLtLibrary(&null_cublas_lt));
}

}  // namespace lockstep
