#include "core/cuda/cublas_lt.h"

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/device/arithmetic_facts.h"

namespace lockstep::cuda {

namespace {

/// The functions and descriptors used here are the same in all these major versions.
constexpr int kOldestMajor = 12;
constexpr int kNewestMajor = CUBLAS_VER_MAJOR;

std::atomic<CublasLtLibrary*>& current_cublas_lt() {
  // Never destroyed: a product may be the last thing that a program does.
  static std::atomic<CublasLtLibrary*> library =
      new CublasLtLibrary([] { return load_cublas_lt(); });
  return library;
}

[[maybe_unused]] const bool kCublasLtTold =
    register_arithmetic_fact(DeviceType::kCUDA, "cuBLASLt", [](int) {
      const LoadedCublasLt& library = cublas_lt().loaded();
      return library.reason.empty() ? version_text(library.version) : std::string("none");
    });

}  // namespace

std::vector<std::string> cublas_lt_files() {
  return library_files("libcublasLt.so", kNewestMajor, kOldestMajor);
}

LoadedCublasLt load_cublas_lt() {
  return open_first("cuBLASLt", cublas_lt_files(), "CUDA's cuBLAS",
                    [](const std::string& file) { return load_cublas_lt(file); });
}

LoadedCublasLt load_cublas_lt(const std::string& file) {
  return open_library(file, "cublasLtGetVersion", &read_cublas_lt);
}

LoadedCublasLt read_cublas_lt(const std::string& file, const FindFunction& find) {
  LoadedCublasLt loaded;
  loaded.file = file;
  const std::string expected = fmt::format("cuBLASLt {} or {}", kNewestMajor, kOldestMajor);
#define LS_CUBLAS_LT_FIND(name) LS_FIND_FUNCTION(loaded, find, name, expected)
  LS_CUBLAS_LT_FUNCTIONS(LS_CUBLAS_LT_FIND)
#undef LS_CUBLAS_LT_FIND
  loaded.version = loaded.functions.cublasLtGetVersion();
  const auto major = static_cast<int>(loaded.version / 10000);
  if (major < kOldestMajor || major > kNewestMajor) {
    return LoadedCublasLt::none(fmt::format("{} is cuBLASLt {}: expected version {} or {}", file,
                                            version_text(loaded.version), kNewestMajor,
                                            kOldestMajor));
  }
  return loaded;
}

void CublasLtLibrary::check(cublasStatus_t status, const char* function) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  const LoadedCublasLt& library = loaded();
  throw DeviceError(
      fmt::format("[cuda] {} failed: {} ({}). {} is cuBLASLt {}; CUBLASLT_LOG_LEVEL=2 makes it say "
                  "more.",
                  function, library.functions.cublasLtGetStatusName(status),
                  library.functions.cublasLtGetStatusString(status), library.file,
                  version_text(library.version)));
}

cublasLtHandle_t CublasLtLibrary::handle(int device) {
  const LoadedCublasLt& library = loaded();
  LS_CHECK(library.reason.empty(), DeviceError, "[cuda] {}.", library.reason);
  LS_CHECK(device >= 0 && device < kMaxDevices, DeviceError,
           "[cuda] there is no cuda:{}: expected a device below {}.", device, kMaxDevices);
  std::atomic<cublasLtHandle_t>& kept = handles_[static_cast<size_t>(device)];
  cublasLtHandle_t handle = kept.load(std::memory_order_acquire);
  if (handle != nullptr) [[likely]]
    return handle;
  const MutexLock lock(mutex_);
  handle = kept.load(std::memory_order_relaxed);
  if (handle != nullptr) return handle;
  const cublasStatus_t status = library.functions.cublasLtCreate(&handle);
  LS_CHECK(
      status != CUBLAS_STATUS_NOT_INITIALIZED, DeviceError,
      "[cuda] cublasLtCreate failed on cuda:{}: {} is cuBLASLt {} and cannot use this machine's "
      "driver. Install a driver for CUDA {} or newer, or put the folder of an older cuBLASLt "
      "first in LOCKSTEP_CUDA_LIBRARIES.",
      device, library.file, version_text(library.version), library.version / 10000);
  check(status, "cublasLtCreate");
  kept.store(handle, std::memory_order_release);
  return handle;
}

CublasLtLibrary& cublas_lt() { return *current_cublas_lt().load(std::memory_order_acquire); }

CublasLtLibrary& set_cublas_lt(CublasLtLibrary& library) {
  return *current_cublas_lt().exchange(&library, std::memory_order_acq_rel);
}

}  // namespace lockstep::cuda
