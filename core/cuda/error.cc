#include "core/cuda/error.h"

#include "core/base/check.h"

namespace lockstep::cuda {

std::string describe(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr ||
      driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) {
    return fmt::format("error {}, which this driver cannot explain", static_cast<int>(result));
  }
  return fmt::format("{} ({})", name, text);
}

bool is_sticky(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
      return true;
    default:
      return false;
  }
}

const char* advice(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
      return "The GPU itself has failed, not the program: `lockstep doctor --gpu` and `dmesg | "
             "grep "
             "Xid` say what. Resume from the last checkpoint on another GPU, or after a reset of "
             "this one.";
    case CUDA_ERROR_UNKNOWN:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return "The GPU may have fallen off the bus: `dmesg | grep Xid` and `lockstep doctor --gpu` "
             "tell. Resume from the last checkpoint on another GPU, or after a reset of this one.";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "`nvidia-smi` shows which processes hold the device's memory.";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "Another process may have the device for itself, or it has fallen off the bus: see "
             "`nvidia-smi` and `dmesg | grep Xid`.";
    case CUDA_ERROR_STUB_LIBRARY:
      return "This is the toolkit's stub, not a driver: take its folder, stubs, out of "
             "LD_LIBRARY_PATH, and install a driver.";
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return "GPUs that NVSwitches connect need a service, which must run and have the driver's "
             "version: `systemctl status nvidia-fabricmanager`.";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "The driver's library and the kernel's module are of two versions: "
             "/proc/driver/nvidia/version has the module's. Restart after an update of the driver, "
             "and in a container use the host's library.";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return "The library in use is of CUDA's compatibility package, which is for data centre GPUs "
             "alone: take its folder, compat, out of LD_LIBRARY_PATH.";
    case CUDA_ERROR_OPERATING_SYSTEM:
      return "The process may not open /dev/nvidia*, or in a container they are not there.";
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
      return "The variables CUDA_MPS_* name a service that does not answer: start "
             "nvidia-cuda-mps-control, or unset them.";
    case CUDA_ERROR_INVALID_DEVICE:
      return "CUDA_VISIBLE_DEVICES may name what is not there: `nvidia-smi -L` lists numbers, "
             "UUIDs "
             "and slices (MIG).";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "Build with the GPU's number in LOCKSTEP_CUDA_ARCHITECTURES, or install a newer "
             "driver.";
    case CUDA_ERROR_DEINITIALIZED:
      return "The process is ending: release what lives on the device before main() returns.";
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
      return "Streams of a capture may wait only for work that is captured with them, and the "
             "first must wait for all others in the end.";
    case CUDA_ERROR_INVALID_HANDLE:
      return "A stream or event of another library may be gone: they must outlive their use.";
    default:
      break;
  }
  return is_sticky(result)
             ? "An earlier kernel has failed and the device can do nothing more in this process. "
               "CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer find the kernel."
             : "`lockstep doctor` shows the driver and its devices.";
}

std::string failure(const Driver& driver, CUresult result, const char* function) {
  return fmt::format("[cuda] {} failed: {}. {}", function, describe(driver, result),
                     advice(result));
}

void check(const Driver& driver, CUresult result, const char* function) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    throw DeviceError(failure(driver, result, function));
}

}  // namespace lockstep::cuda
