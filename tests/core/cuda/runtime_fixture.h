#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/cuda/runtime.h"
#include "tests/emulation/fake_driver.h"

namespace lockstep::cuda {

inline lockstep::Stream stream(int id, int device = 0) {
  return {{DeviceType::kCUDA, static_cast<int8_t>(device)}, id};
}

/// A runtime over a fake driver of two devices.
class CudaRuntime : public ::testing::Test {
 protected:
  ~CudaRuntime() override {
    runtime.reset();
    EXPECT_EQ(fake.held(), "nothing");
    EXPECT_THAT(fake.misuse(), ::testing::IsEmpty());
  }

  FakeDriver fake{2};
  std::unique_ptr<Runtime> runtime = std::make_unique<Runtime>([this] { return fake.load(); });
};

}  // namespace lockstep::cuda
