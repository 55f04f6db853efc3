#pragma once

#include <cublasLt.h>

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/cuda/opened_library.h"
#include "core/tensor/device.h"

namespace lockstep::cuda {

/// The functions of cuBLASLt that are called here. Descriptors are initialised in memory that the
/// caller provides; the header's inline functions for this call the ones with `_internal`.
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

/// Table of cuBLASLt's functions.
struct CublasLt {
#define LS_CUBLAS_LT_MEMBER(name) decltype(&::name) name = nullptr;
  LS_CUBLAS_LT_FUNCTIONS(LS_CUBLAS_LT_MEMBER)
#undef LS_CUBLAS_LT_MEMBER
};

using LoadedCublasLt = OpenedLibrary<CublasLt>;

/// Opens the first usable file of `cublas_lt_files`; it stays open until the process ends.
LoadedCublasLt load_cublas_lt();
/// Opens this file.
LoadedCublasLt load_cublas_lt(const std::string& file);
/// Fills the table from an opened library; `load_cublas_lt` calls it.
LoadedCublasLt read_cublas_lt(const std::string& file, const FindFunction& find);
/// Paths at which to look for the library, in order: version 13 before 12, each in the folders of
/// LOCKSTEP_CUDA_LIBRARIES (separated by colons), on the system's search path, and in the toolkit's
/// folder by CUDA_HOME, CUDA_PATH or at /usr/local/cuda.
std::vector<std::string> cublas_lt_files();

/// The library, with one handle for each device. Thread-safe.
class CublasLtLibrary : public LazyLibrary<CublasLt> {
 public:
  using LazyLibrary::LazyLibrary;

  /// Returns the device's handle; the first call creates it. The device's context must be current
  /// on this thread. Throws DeviceError.
  cublasLtHandle_t handle(int device);
  /// Throws DeviceError with the library's own message unless a call of `function` succeeded.
  void check(cublasStatus_t status, const char* function);

 private:
  Mutex mutex_;  ///< held to create a handle
  std::array<std::atomic<cublasLtHandle_t>, kMaxDevices> handles_{};
};

/// The process's cuBLASLt library.
CublasLtLibrary& cublas_lt();
/// For tests: makes `cublas_lt()` return `library`, which is never destroyed. Returns the previous
/// one.
CublasLtLibrary& set_cublas_lt(CublasLtLibrary& library);

}  // namespace lockstep::cuda
