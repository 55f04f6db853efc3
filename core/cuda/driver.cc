#include "core/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/cuda/error.h"
#include "core/tensor/device.h"

namespace lockstep::cuda {

namespace {

constinit std::atomic<uint32_t> g_forks = 0;
[[maybe_unused]] const bool kCountsForks =
    pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); }) == 0;

/// Note for messages about missing devices: the variable may hide them.
std::string hidden_devices() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : fmt::format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible);
}

/// The reason for no device after a failed call: what the driver says, and what to do.
std::string reason_of(const Driver& driver, CUresult result, const char* function) {
  std::string_view what_to_do = advice(result);
  what_to_do.remove_suffix(what_to_do.ends_with('.') ? 1 : 0);
  return fmt::format("{} failed: {}{}. {}", function, describe(driver, result), hidden_devices(),
                     what_to_do);
}

/// Fills the table. Returns null, or the name of the first function that the library lacks.
const char* find_functions(void* library, Driver& driver) {
#define LS_CUDA_TEXT(name) #name
#define LS_CUDA_FIND(name)                                                                   \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, LS_CUDA_TEXT(name))); \
  if (driver.name == nullptr) return LS_CUDA_TEXT(name);
  LS_CUDA_FUNCTIONS(LS_CUDA_FIND)
#undef LS_CUDA_FIND
#undef LS_CUDA_TEXT
  return nullptr;
}

}  // namespace

LoadedDriver load_driver(const char* library) {
  LoadedDriver loaded;
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    loaded.reason = dlerror();
    return loaded;
  }
  if (const char* const missing = find_functions(opened, loaded.functions)) {
    loaded.functions = {};
    loaded.reason = fmt::format("{} has no {}: expected a driver of CUDA {}.{} or newer", library,
                                missing, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    dlclose(opened);
    return loaded;
  }
  return initialise(loaded.functions);
}

LoadedDriver initialise(const Driver& functions) {
  LoadedDriver loaded{.functions = functions};
  int version = 0;
  // A driver cannot load modules of a later major version than its own.
  if (functions.cuDriverGetVersion != nullptr &&
      functions.cuDriverGetVersion(&version) == CUDA_SUCCESS &&
      version / 1000 < CUDA_VERSION / 1000) {
    loaded.reason = fmt::format(
        "the driver is too old: expected one of CUDA {}.0 or newer, got {}.{}. Install a newer "
        "driver, or build with an older toolkit",
        CUDA_VERSION / 1000, version / 1000, version % 1000 / 10);
    return loaded;
  }
  if (const CUresult result = functions.cuInit(0); result != CUDA_SUCCESS) {
    loaded.reason = result == CUDA_ERROR_NO_DEVICE
                        ? "the driver reports no device" + hidden_devices()
                        : reason_of(functions, result, "cuInit");
    return loaded;
  }
  int count = 0;
  if (const CUresult result = functions.cuDeviceGetCount(&count); result != CUDA_SUCCESS) {
    loaded.reason = reason_of(functions, result, "cuDeviceGetCount");
  } else if (count <= 0) {
    loaded.reason = "the driver reports no device" + hidden_devices();
  }
  if (loaded.reason.empty()) loaded.devices = std::min(count, kMaxDevices);
  return loaded;
}

uint32_t fork_count() noexcept { return g_forks.load(std::memory_order_relaxed); }

}  // namespace lockstep::cuda
