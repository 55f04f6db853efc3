#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/tensor/device.h"

namespace lockstep::cuda {

/// Notices that a GPU hangs without an error: a kernel that does not end, a call of the driver that
/// does not return. Threads that wait for the GPU then wait for ever. Two threads look after it:
/// one marks the ends of what is queued on the device's streams, and asks the driver which marks
/// were reached; the other calls nothing of the driver, and counts the time in which no mark was
/// reached although there is one, or in which the first thread's call does not return. Moments at
/// which the work waits for other ranks (core/device/rank_waits.h) do not count.
class HangWatch {
 public:
  /// Called once, by the second thread, with what hangs since when, in sentences. The threads that
  /// wait for the device cannot be woken, nor can what belongs to the device be destroyed: the
  /// process is to be ended.
  using Told = std::function<void(const std::string& text)>;

  /// Watches the work that this process queues on a cuda device. Throws DeviceError if there is no
  /// such device. The driver is first called when the device has been used.
  HangWatch(Device device, std::chrono::milliseconds limit, Told told);
  /// Waits for the first thread's call of the driver; if it does not return, `told` is called.
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// How often the first thread has looked at the device.
  uint64_t looks() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::cuda
