#pragma once

#include <cublasLt.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "core/cuda/opened_library.h"
#include "core/tensor/device.h"

namespace lockstep::cuda {

/// The functions of cuBLASLt that are called here. Descriptors are initialised in memory of ours,
/// which is what the header's inline functions call the ones with `_internal` for.
#define LS_CUBLAS_LT_FUNCTIONS(X)          \
  X(cublasLtGetVersion)                    \
  X(cublasLtGetStatusName)                 \
  X(cublasLtGetStatusString)               \
  X(cublasLtCreate)                        \
  X(cublasLtDestroy)                       \
  X(cublasLtMatmulDescInit_internal)       \
  X(cublasLtMatmulDescSetAttribute)        \
  X(cublasLtMatrixLayoutInit_internal)     \
  X(cublasLtMatrixLayoutSetAttribute)      \
  X(cublasLtMatmulPreferenceInit_internal) \
  X(cublasLtMatmulPreferenceSetAttribute)  \
  X(cublasLtMatmulAlgoGetHeuristic)        \
  X(cublasLtMatmul)

/// cuBLASLt's functions.
struct CublasLt {
#define LS_CUBLAS_LT_MEMBER(name) decltype(&::name) name = nullptr;
  LS_CUBLAS_LT_FUNCTIONS(LS_CUBLAS_LT_MEMBER)
#undef LS_CUBLAS_LT_MEMBER
};

using LoadedCublasLt = OpenedLibrary<CublasLt>;

/// Opens the first of `cublas_lt_files` that can be used, for as long as the process lives.
LoadedCublasLt load_cublas_lt();
/// Opens this one.
LoadedCublasLt load_cublas_lt(const std::string& file);
/// The second half of it.
LoadedCublasLt read_cublas_lt(const std::string& file, const FindFunction& find);
/// Where it is looked for, in order: version 13 before 12, each in the folders of
/// LOCKSTEP_CUDA_LIBRARIES (separated by colons), where the system finds libraries, and in the
/// toolkit's folder by CUDA_HOME, CUDA_PATH or at /usr/local/cuda.
std::vector<std::string> cublas_lt_files();

/// The library and what it keeps for each device. Thread-safe.
class CublasLtLibrary : public LazyLibrary<CublasLt> {
 public:
  using LazyLibrary::LazyLibrary;

  /// Made at the first call and kept. The device's context is the thread's current one. Throws
  /// DeviceError.
  cublasLtHandle_t handle(int device);
  /// Throws DeviceError with the library's words unless a call of `function` succeeded.
  void check(cublasStatus_t status, const char* function);

 private:
  std::mutex mutex_;
  std::array<std::atomic<cublasLtHandle_t>, kMaxDevices> handles_{};
};

/// The one of this process.
CublasLtLibrary& cublas_lt();
/// For tests: from now on `cublas_lt()` is `library`, which is never destroyed. Returns the one
/// before.
CublasLtLibrary& set_cublas_lt(CublasLtLibrary& library);

}  // namespace lockstep::cuda
