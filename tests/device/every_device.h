#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/cuda/availability.h"
#include "core/device_runtime.h"

namespace lockstep {

/// Of a claim that holds on each kind of device: on the cpu, on its kernels behind streams, on a
/// GPU. Without one the test is skipped and says why; the emulated GPU is cuda:0 where
/// libcuda_emulation.so is loaded.
///
///     class Streams : public EveryDevice {};
///     INSTANTIATE_TEST_SUITE_P(Devices, Streams, kEveryDevice, name_of_device);
///     TEST_P(Streams, ...) { ... device() ... }
class EveryDevice : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (device().type != DeviceType::kCUDA) return;
    const std::string reason = cuda::availability().reason;
    if (!reason.empty()) GTEST_SKIP() << "no GPU: " << reason;
  }

  Device device() const { return GetParam(); }
  /// Whether its kernels are the cpu's, and results have the same bits.
  bool has_bits_of_the_cpu() const { return device().type != DeviceType::kCUDA; }
};

inline const auto kEveryDevice =
    ::testing::Values(kCPU, Device{DeviceType::kHost, 0}, Device{DeviceType::kCUDA, 0});

/// "cpu", "host", "cuda".
inline std::string name_of_device(const ::testing::TestParamInfo<Device>& device) {
  const std::string name = to_string(device.param);
  return name.substr(0, name.find(':'));
}

}  // namespace lockstep
