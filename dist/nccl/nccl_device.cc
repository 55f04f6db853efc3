#include "dist/nccl/nccl_device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "core/base/check.h"
#include "core/device/device_runtime.h"

namespace lockstep::dist {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Returns an identifier that is equal in all containers of a machine and unique to it.
std::string machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : host_name();
}

// Driver API functions that only this file needs, declared without the driver's header.
using Context = void*;
struct DriverCalls {
  int (*get)(int* device, int index) = nullptr;
  int (*bus_id)(char* text, int size, int device) = nullptr;
  int (*retain)(Context*, int device) = nullptr;
  int (*release)(int device) = nullptr;
  int (*push)(Context) = nullptr;
  int (*pop)(Context*) = nullptr;
};

DriverCalls find_driver() {
  // Already opened by the device's runtime, which keeps it open.
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  LS_CHECK(library != nullptr, DeviceError, "[nccl] libcuda.so.1 cannot be loaded: {}.", dlerror());
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    LS_CHECK(function != nullptr, DeviceError, "[nccl] libcuda.so.1 has no {}.", name);
  };
  DriverCalls calls;
  find(calls.get, "cuDeviceGet");
  find(calls.bus_id, "cuDeviceGetPCIBusId");
  find(calls.retain, "cuDevicePrimaryCtxRetain");
  find(calls.release, "cuDevicePrimaryCtxRelease_v2");
  find(calls.push, "cuCtxPushCurrent_v2");
  find(calls.pop, "cuCtxPopCurrent_v2");
  return calls;
}

void check(int result, const char* function) {
  LS_CHECK(result == 0, DeviceError, "[nccl] {} failed with error {} of the CUDA driver.", function,
           result);
}

}  // namespace

struct NcclDevice::Gpu {
  explicit Gpu(int index) : calls(find_driver()) {
    check(calls.get(&device, index), "cuDeviceGet");
    std::array<char, 64> text{};
    check(calls.bus_id(text.data(), static_cast<int>(text.size()), device), "cuDeviceGetPCIBusId");
    bus = text.data();
    check(calls.retain(&context, device), "cuDevicePrimaryCtxRetain");
  }
  ~Gpu() { (void)calls.release(device); }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  DriverCalls calls;
  int device = 0;
  Context context = nullptr;
  std::string bus;
};

NcclDevice::NcclDevice(Device device) : device_(device) {
  (void)require_runtime(device);
  std::string place = to_string(device);
  if (device.type == DeviceType::kCUDA) {
    gpu_ = std::make_unique<Gpu>(device.index);
    place = "GPU " + gpu_->bus;
  }
  identity_ = machine() + " " + place;
  description_ = fmt::format("{} of host {}", place, host_name());
  if (gpu_) description_ += fmt::format(" ({})", to_string(device));
}

NcclDevice::NcclDevice(Device device, std::string identity)
    : device_(device), identity_(std::move(identity)) {
  LS_CHECK(device.type != DeviceType::kCUDA, DeviceError,
           "[nccl] expected a device that is not the driver's to name, got {}.", to_string(device));
  (void)require_runtime(device);
  description_ = fmt::format("{} of host {} ({})", identity_, host_name(), to_string(device));
}

NcclDevice::~NcclDevice() = default;

NcclDevice::Scope::Scope(const NcclDevice& device) : device_(device) {
  if (device_.gpu_) check(device_.gpu_->calls.push(device_.gpu_->context), "cuCtxPushCurrent");
}

NcclDevice::Scope::~Scope() {
  Context was = nullptr;
  if (device_.gpu_) (void)device_.gpu_->calls.pop(&was);
}

}  // namespace lockstep::dist
