// Guarantees of the caching allocator on every device.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/allocator.h"
#include "core/tensor/stream.h"
#include "tests/device/every_device.h"

namespace lockstep {
namespace {

class DeviceMemoryUse : public EveryDevice {
 protected:
  TensorOptions here() const { return {DType::kF32, device()}; }
};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemoryUse, kEveryDevice, name_of_device);

TEST_P(DeviceMemoryUse, AFreedBlockServesItsStreamAgain) {
  const void* before = nullptr;
  {
    const Tensor x = zeros({1000}, here());
    before = x.data();
  }
  EXPECT_EQ(empty({1000}, here()).data(), before);
}

TEST_P(DeviceMemoryUse, ABlockKeepsItsContentsUntilTheStreamThatItWasLentToIsDone) {
  if (!is_asynchronous(device().type)) GTEST_SKIP() << "there is one stream";
  const OwnedStream side(device());
  std::atomic<bool> release = false;
  Tensor lent = full({1000}, 3, here());
  // Loads the kernel first, since a driver may wait for all streams to load it.
  EXPECT_EQ(mul(lent, 2).to(kCPU).data<float>()[0], 6);
  side.get().wait_stream(current_stream(device()));
  side.get().add_callback([&] { release.wait(false); });
  Tensor seen;
  {
    const StreamGuard guard(side.get());
    seen = mul(lent, 2);
  }
  lent.record_stream(side.get());
  lent = {};
  std::vector<Tensor> others;
  for (int i = 0; i < 100; ++i) others.push_back(full({1000}, 7, here()));
  release = true;
  release.notify_all();
  current_stream(device()).synchronize();
  side.get().synchronize();
  const Tensor there = seen.to(kCPU);
  EXPECT_TRUE(std::all_of(there.data<float>(), there.data<float>() + 1000,
                          [](float each) { return each == 6; }));
}

TEST_P(DeviceMemoryUse, MoreThanThereIsIsAnErrorAndTheDeviceGoesOn) {
  // Exceeds the address space of the CPU, or the memory of a device.
  const int64_t elements = int64_t{1} << (device() == kCPU ? 48 : 42);
  EXPECT_THROW((void)empty({elements}, here()), OutOfMemoryError);
  EXPECT_EQ(add(ones({3}, here()), 1).to(kCPU).data<float>()[2], 2);
}

TEST_P(DeviceMemoryUse, WorkThatRepeatsMakesNoDriverCall) {
  const auto work = [&] {
    Tensor x = ones({300, 70}, here());
    for (int i = 0; i < 8; ++i) x = add(mul(x, 0.5), x);
    return x.to(kCPU).data<float>()[0];
  };
  for (int i = 0; i < 2; ++i) work();
  const MemoryStats before = allocator(device()).stats();
  for (int i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(work(), 25.628906F);
  EXPECT_EQ(allocator(device()).stats().system_calls, before.system_calls);
}

}  // namespace
}  // namespace lockstep
