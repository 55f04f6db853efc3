#pragma once

#include <vector>

#include "core/cuda/pattern_word.h"
#include "core/cuda/runtime.h"
#include "core/device_runtime.h"
#include "tests/core/cuda/fake_driver.h"

namespace lockstep::cuda {

/// While alive, there is the one device cuda:0, of a fake driver whose kernels run here.
struct FakeGpu {
  explicit FakeGpu(size_t granules = 64) : fake(1, granules * FakeDriver::kGranule) {
    fake.add_kernel("fill_pattern", 3, [](const std::vector<uint64_t>& arguments) {
      auto* const words = reinterpret_cast<uint64_t*>(arguments[0]);
      for (uint64_t i = 0; i < arguments[1]; ++i) words[i] = pattern_word(arguments[2], i);
    });
    fake.add_kernel("count_wrong", 4, [](const std::vector<uint64_t>& arguments) {
      const auto* const words = reinterpret_cast<const uint64_t*>(arguments[0]);
      auto* const wrong = reinterpret_cast<uint64_t*>(arguments[3]);
      for (uint64_t i = 0; i < arguments[1]; ++i) {
        *wrong += words[i] != pattern_word(arguments[2], i);
      }
    });
    before = set_device_runtime(DeviceType::kCUDA, &runtime);
  }
  ~FakeGpu() { set_device_runtime(DeviceType::kCUDA, before); }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  FakeDriver fake;
  Runtime runtime{[this] { return fake.load(); }};
  DeviceRuntime* before = nullptr;
};

}  // namespace lockstep::cuda
