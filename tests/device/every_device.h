#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "core/cuda/availability.h"
#include "core/device/device_runtime.h"

namespace lockstep {

/// A device as a test parameter. Its own type, so that it is printed in one way in all of a test
/// program: ctest puts the printed text into the test's name: "cpu", "host", "cuda".
struct DeviceParameter {
  Device device;

  friend void PrintTo(const DeviceParameter& parameter, std::ostream* out) {
    const std::string name = to_string(parameter.device);
    *out << name.substr(0, name.find(':'));
  }
};

/// Fixture for guarantees of every kind of device: the CPU, the host device (CPU kernels on
/// streams), and a GPU. Without a GPU the test is skipped with the reason; if libcuda_emulation.so
/// is loaded, the emulated GPU is cuda:0.
///
///     class Streams : public EveryDevice {};
///     INSTANTIATE_TEST_SUITE_P(Devices, Streams, kEveryDevice, name_of_device);
///     TEST_P(Streams, ...) { ... device() ... }
class EveryDevice : public ::testing::TestWithParam<DeviceParameter> {
 protected:
  void SetUp() override {
    if (device().type != DeviceType::kCUDA) return;
    const std::string reason = cuda::availability().reason;
    if (!reason.empty()) GTEST_SKIP() << "no GPU: " << reason;
  }

  Device device() const { return GetParam().device; }
  /// Whether it runs the CPU's kernels, so that results have the same bits.
  bool has_bits_of_the_cpu() const { return device().type != DeviceType::kCUDA; }
};

inline const auto kEveryDevice =
    ::testing::Values(DeviceParameter{kCPU}, DeviceParameter{{DeviceType::kHost, 0}},
                      DeviceParameter{{DeviceType::kCUDA, 0}});

/// The device's printed name.
inline std::string name_of_device(const ::testing::TestParamInfo<DeviceParameter>& info) {
  return ::testing::PrintToString(info.param);
}

}  // namespace lockstep
