// Initialization of libcuda_emulation.so, linked or loaded by LD_PRELOAD: cuda:0 is emulated, its
// matrix products use the fake cuBLASLt, profiles the fake CUPTI, and there is no cuDNN.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/cuda/runtime.h"
#include "tests/emulation/fake_cublas_lt.h"
#include "tests/emulation/fake_cupti.h"
#include "tests/emulation/fake_driver.h"
#include "tests/emulation/fake_nvrtc.h"
#include "tests/emulation/no_cudnn.h"

namespace lockstep::cuda {

namespace {

/// Value of an environment variable if it is a number of at least 1, else `otherwise`.
size_t setting(const char* name, size_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  const long value = std::strtol(text, nullptr, 10);
  if (value > 0) return static_cast<size_t>(value);
  std::fprintf(stderr, "[emulated GPU] %s is \"%s\": expected a number of at least 1.\n", name,
               text);
  return otherwise;
}

/// Makes the GPU fail as the variable says: "214:FILE" with CUDA's error 214 once there is FILE,
/// "hang:FILE" without an error, in a kernel that does not end.
void set_fault(FakeDriver& driver) {
  const char* const text = std::getenv("LOCKSTEP_EMULATED_FAULT");
  if (text == nullptr) return;
  if (std::string_view(text).starts_with("hang:")) return driver.hang_at(text + 5);
  char* colon = nullptr;
  const long result = std::strtol(text, &colon, 10);
  if (result > 0 && *colon == ':') {
    driver.poison_at(static_cast<CUresult>(result), colon + 1);
  } else {
    std::fprintf(stderr,
                 "[emulated GPU] LOCKSTEP_EMULATED_FAULT is \"%s\": expected an error's number, or "
                 "hang, a colon and a file.\n",
                 text);
  }
}

LoadedDriver load_emulated_driver() {
  // Never destroyed: static tensors free their memory at exit.
  static auto* const driver = new FakeDriver(static_cast<int>(setting("LOCKSTEP_EMULATED_GPUS", 1)),
                                             setting("LOCKSTEP_EMULATED_MEMORY_MB", 2048) << 20);
  driver->stand_in();
  set_fault(*driver);
  return driver->load();
}

[[maybe_unused]] const bool kInstalled = [] {
  set_driver_loader(&load_emulated_driver);
  install_fake_cublas_lt();
  install_fake_cupti();
  install_fake_nvrtc();
  install_no_cudnn();
  return true;
}();

}  // namespace

}  // namespace lockstep::cuda
