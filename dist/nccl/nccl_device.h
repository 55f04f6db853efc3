#pragma once

#include <memory>
#include <string>

#include "core/tensor/device.h"

namespace lockstep::dist {

/// A rank's device as NCCL needs it: its identity, and a scope that makes it the thread's current
/// device.
///
/// Thread-safe.
class NcclDevice {
 public:
  /// Throws DeviceError if there is no such device.
  explicit NcclDevice(Device device);
  /// For a device type other than cuda, whose identity the caller supplies.
  NcclDevice(Device device, std::string identity);
  ~NcclDevice();

  Device device() const noexcept { return device_; }
  /// Equal for two ranks exactly if they use the same device of the same machine, independent of
  /// CUDA_VISIBLE_DEVICES.
  const std::string& identity() const noexcept { return identity_; }
  /// Description for errors: "GPU 0000:1b:00.0 of host a01 (cuda:0)".
  const std::string& description() const noexcept { return description_; }

  /// Makes the device the thread's current one, and restores the previous one at its end.
  class Scope {
   public:
    explicit Scope(const NcclDevice& device);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const NcclDevice& device_;
  };

 private:
  struct Gpu;

  Device device_;
  std::unique_ptr<Gpu> gpu_;  ///< null unless a cuda device
  std::string identity_;
  std::string description_;
};

}  // namespace lockstep::dist
