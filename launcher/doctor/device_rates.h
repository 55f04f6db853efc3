#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/device/device_memory.h"
#include "core/device/device_runtime.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

/// Rates of a device, measured with our own operators and streams. Each function takes about
/// `seconds`: sizes grow until one call is long enough to be timed, so that slow devices are
/// measured at small sizes.
namespace lockstep::launcher {

struct MeasuredRate {
  double per_second = 0;  ///< bytes or FLOP
  int64_t size = 0;       ///< bytes of a tensor, or a matrix' side
};

/// Bytes that additions of two f32 tensors read and write.
MeasuredRate addition_rate(Device device, double seconds);

/// FLOP of products of square matrices. `while_busy`, if any, is called once the device has more
/// of them to do than it ends meanwhile.
MeasuredRate product_rate(Device device, DType dtype, double seconds,
                          const std::function<void()>& while_busy = {});

/// Bytes of copies between pinned memory of the cpu and the device.
MeasuredRate copy_rate(Device device, Transfer direction, double seconds);

/// Bytes of copies from a device's memory to another's.
MeasuredRate peer_rate(Device from, Device to, double seconds);

/// A block of a device's memory, taken from the driver.
class DeviceBlock {
 public:
  /// Throws OutOfMemoryError.
  DeviceBlock(Device device, size_t bytes, bool pinned_on_cpu = false);
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  void* data() const { return data_; }

 private:
  DeviceMemory& memory_;
  size_t bytes_;
  bool pinned_;
  void* data_;
};

}  // namespace lockstep::launcher
