#pragma once

#include <memory>
#include <string>

#include "core/tensor/device.h"

namespace lockstep::dist {

/// What NCCL wants of a rank's device beyond its streams: that it is known, and that it is the
/// thread's current one.
///
/// Thread-safe.
class NcclDevice {
 public:
  /// Throws DeviceError where there is no such device.
  explicit NcclDevice(Device device);
  /// A device of another kind than cuda, which the caller names himself.
  NcclDevice(Device device, std::string identity);
  ~NcclDevice();

  Device device() const noexcept { return device_; }
  /// Equal for two ranks exactly if they use one device of one machine, whatever numbers
  /// CUDA_VISIBLE_DEVICES gives it.
  const std::string& identity() const noexcept { return identity_; }
  /// For errors: "GPU 0000:1b:00.0 of host a01 (cuda:0)".
  const std::string& description() const noexcept { return description_; }

  /// While alive, the device is the thread's current one; then the one before is.
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
  std::unique_ptr<Gpu> gpu_;  ///< of cuda devices
  std::string identity_;
  std::string description_;
};

}  // namespace lockstep::dist
