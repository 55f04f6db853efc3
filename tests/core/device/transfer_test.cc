#include "core/device/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/device/pinned_allocator.h"
#include "core/device/stream_sanitizer.h"
#include "core/device/waits.h"
#include "core/memory/caching_allocator.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/pinned.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/core/device/counting.h"
#include "tests/core/device/sanitized_streams.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<float> numbers(const Tensor& tensor) {
  const Tensor here = tensor.to(kCPU).contiguous();
  return {here.data<float>(), here.data<float>() + here.numel()};
}

/// Runs each test on its own stream, which the gate can hold.
class Transfers : public ::testing::Test {
 protected:
  const Stream& stream() const { return stream_.get(); }
  void hold() { gate.hold(stream()); }
  void finish() {
    gate.open();
    stream().synchronize();
  }

  OwnedStream stream_{kHost0};
  StreamGuard current_{stream_.get()};
  Gate gate;
};

TEST_F(Transfers, FromTheCpuAreQueuedAfterTheSourceWasRead) {
  hold();
  const int64_t waits = hidden_waits();
  const Tensor source = counting({4}, 1);
  const Tensor copy = source.to(kHost0);
  EXPECT_FALSE(stream().query());
  source.fill_(0);
  finish();
  EXPECT_EQ(hidden_waits(), waits);
  EXPECT_EQ(copy.device(), kHost0);
  EXPECT_THAT(numbers(copy), ElementsAre(1, 2, 3, 4));
}

TEST_F(Transfers, SeveralFromTheCpuKeepWhatEachOfThemRead) {
  hold();
  const Tensor source = counting({4}, 1);
  const Tensor first = source.to(kHost0);
  source.fill_(7);
  const Tensor second = source.to(kHost0);  // while the first one waits to be copied
  finish();
  EXPECT_THAT(numbers(first), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(numbers(second), ElementsAre(7, 7, 7, 7));
}

TEST_F(Transfers, LargeOnesFromMemoryThatIsNotPinnedAreWaitedFor) {
  const Tensor source = zeros({9 << 20});
  source.select(0, 9 << 19).fill_(3);
  const int64_t waits = hidden_waits();
  const Tensor copy = source.to(kHost0);
  EXPECT_EQ(hidden_waits(), waits + 1);
  EXPECT_TRUE(stream().query());
  EXPECT_EQ(copy.select(0, 9 << 19).item<float>(), 3);
}

TEST_F(Transfers, ToTheCpuAreWaitedForByDefault) {
  const Tensor source = counting({3}, 1).to(kHost0);
  const int64_t waits = hidden_waits();
  source.mul_(source);
  const Tensor copy = source.to(kCPU);
  EXPECT_EQ(hidden_waits(), waits + 1);
  EXPECT_TRUE(stream().query());
  EXPECT_EQ(copy.data<float>()[2], 9);
  EXPECT_FALSE(is_pinned(copy));
}

TEST_F(Transfers, NonBlockingOnesToTheCpuArePinnedAndQueued) {
  const Tensor source = counting({3}, 1).to(kHost0);
  hold();
  const int64_t waits = hidden_waits();
  const Tensor copy = to(source, kCPU, /*non_blocking=*/true);
  EXPECT_FALSE(stream().query());
  EXPECT_TRUE(is_pinned(copy));
  EXPECT_EQ(hidden_waits(), waits);
  finish();
  EXPECT_THAT(numbers(copy), ElementsAre(1, 2, 3));
}

TEST_F(Transfers, NonBlockingOnesFromPinnedMemoryReadItWhenTheStreamComesThere) {
  const Tensor source = pin_memory(counting({4}, 1));
  hold();
  const Tensor copy = to(source, kHost0, /*non_blocking=*/true);
  source.data<float>()[0] = 9;  // before the copy ran, so the copy must see it
  finish();
  EXPECT_THAT(numbers(copy), ElementsAre(9, 2, 3, 4));
}

TEST_F(Transfers, PinnedMemoryIsNotReusedBeforeItsCopyIsDone) {
  pinned_allocator().empty_cache();
  Tensor source = pin_memory(counting({1024}, 1));
  const void* const address = source.data();
  hold();
  const Tensor copy = to(source, kHost0, /*non_blocking=*/true);
  source = Tensor();
  const Tensor other = empty_pinned({1024}, DType::kF32, kHost0);
  EXPECT_NE(other.data(), address);
  other.fill_(0);
  finish();
  EXPECT_THAT(numbers(copy), ElementsAreArray(numbers(counting({1024}, 1))));
}

TEST_F(Transfers, PinnedMemoryIsNotReusedBeforeACopyBackIntoItIsDone) {
  const Tensor source = full({1024}, 5, {DType::kF32, kHost0});
  pinned_allocator().empty_cache();  // else the next tensor takes a block that was freed earlier
  hold();
  Tensor copy = to(source, kCPU, /*non_blocking=*/true);
  const void* const address = copy.data();
  copy = Tensor();
  const Tensor other = empty_pinned({1024}, DType::kF32, kHost0);
  EXPECT_NE(other.data(), address);
  finish();
  EXPECT_EQ(empty_pinned({1024}, DType::kF32, kHost0).data(), address);
}

TEST_F(Transfers, CopyIntoMovesBytesBothWaysWithoutWaitingWherePinned) {
  const Tensor source = pin_memory(counting({2, 3}, 1));
  const Tensor there = zeros({2, 3}, {DType::kF32, kHost0});
  const Tensor back = empty_pinned({2, 3}, DType::kF32, kHost0);
  const uint32_t version = there.version();
  hold();
  const int64_t waits = hidden_waits();
  copy_(there, source, /*non_blocking=*/true);
  copy_(back, there, /*non_blocking=*/true);
  EXPECT_EQ(hidden_waits(), waits);
  EXPECT_EQ(there.version(), version + 1);
  EXPECT_FALSE(stream().query());
  finish();
  EXPECT_THAT(numbers(back), ElementsAre(1, 2, 3, 4, 5, 6));
  copy_(back, mul(there, there), /*non_blocking=*/false);
  EXPECT_EQ(back.data<float>()[5], 36);
}

TEST_F(Transfers, CopyIntoCastsBroadcastsAndKeepsStrides) {
  const Tensor source = counting({2, 3}, 1);
  const Tensor wide = zeros({3, 2}, {DType::kF64, kHost0});
  copy_(wide, source.t());
  EXPECT_THAT(numbers(wide.to(DType::kF32)), ElementsAre(1, 4, 2, 5, 3, 6));
  const Tensor row = zeros({2, 3}, {DType::kF32, kHost0});
  copy_(row.slice(1, 1), counting({2}, 1));
  EXPECT_THAT(numbers(row), ElementsAre(0, 1, 2, 0, 1, 2));
  const Tensor here = zeros({3, 2});
  copy_(here.t(), row, /*non_blocking=*/true);
  EXPECT_THAT(numbers(here), ElementsAre(0, 0, 1, 1, 2, 2));
  expect_error<ShapeError>([&] { copy_(row, counting({4}, 1)); }, "broadcast");
}

TEST_F(Transfers, KeepGeometryAndDTypeAsToOnOneDevice) {
  const Tensor base = counting({2, 3, 4}, 1);
  for (const Tensor& source :
       {base, base.transpose(0, 2), base.slice(2, 1, 4, 2), base.select(1, 2),
        counting({1}, 1).expand({3, 2}), counting({0, 3}, 1)}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32}) {
      const Tensor wanted = source.to(dtype).clone();
      const Tensor there = to(source, dtype, kHost0);
      EXPECT_EQ(there.dtype(), dtype);
      EXPECT_THAT(there.sizes(), ElementsAreArray(wanted.sizes()));
      EXPECT_THAT(there.strides(), ElementsAreArray(wanted.strides()));
      const Tensor back = to(there, DType::kF32, kCPU);
      EXPECT_THAT(numbers(back), ElementsAreArray(numbers(source)));
    }
  }
}

TEST_F(Transfers, BetweenTwoDevicesWaitForBothStreams) {
  const Tensor source = zeros({4}, {DType::kF32, kHost0});
  const OwnedStream other(kHost1);
  const StreamGuard guard(other.get());
  const Tensor target = empty({4}, {DType::kF32, kHost1});
  hold();
  source.fill_(7);
  const int64_t waits = hidden_waits();
  copy_(target, source);
  target.add_(target);
  EXPECT_EQ(hidden_waits(), waits);
  EXPECT_FALSE(other.get().query());
  gate.open();
  EXPECT_THAT(numbers(target), ElementsAre(14, 14, 14, 14));
  EXPECT_THAT(numbers(source.to(kHost1)), ElementsAre(7, 7, 7, 7));
}

TEST_F(Transfers, StorageOfADeviceGrowsInOrderWithItsStream) {
  const Tensor tensor = zeros({4}, {DType::kF32, kHost0});
  hold();
  tensor.fill_(5);
  tensor.storage()->resize(1 << 20);
  EXPECT_FALSE(stream().query());
  finish();
  EXPECT_THAT(numbers(tensor), ElementsAre(5, 5, 5, 5));
}

TEST_F(Transfers, MemoryThatAStorageLeavesOnAnotherStreamIsReusedAfterTheCopy) {
  const SanitizedStreams sanitized;
  caching_allocator(kHost0).empty_cache();
  const TensorOptions options{DType::kF32, kHost0};
  const Tensor tensor = full({1 << 18}, 5, options);
  const void* const left = tensor.data();
  const OwnedStream other(kHost0);
  other.get().wait_stream(stream());
  {
    const StreamGuard there(other.get());
    tensor.storage()->resize(4 << 20);
  }
  // Nothing makes this stream wait for the other one but the allocator.
  std::vector<Tensor> next;
  do {
    next.push_back(empty({1 << 18}, options).fill_(9));
  } while (next.back().data() != left && next.size() < 100);
  EXPECT_EQ(next.back().data(), left);
  EXPECT_EQ(stream_sanitizer::reports(), 0);
  stream().wait_stream(other.get());
  EXPECT_THAT(numbers(tensor), testing::Each(5));
}

TEST_F(Transfers, MetaTensorsHaveNothingToCopy) {
  expect_error<DeviceError>([] { (void)empty({2}, {DType::kF32, kMeta}).to(kHost0); }, "meta");
  EXPECT_EQ(zeros({2}, {DType::kF32, kHost0}).to(kMeta).device(), kMeta);
}

TEST(Pinned, CopiesKeepTheirElementsAndGeometry) {
  const Tensor source = counting({2, 3}, 1).t();
  EXPECT_FALSE(is_pinned(source));
  const Tensor pinned = pin_memory(source);
  EXPECT_TRUE(is_pinned(pinned));
  EXPECT_TRUE(is_pinned(pinned.select(0, 1))) << "views are, too";
  EXPECT_THAT(pinned.strides(), ElementsAreArray(source.strides()));
  EXPECT_THAT(numbers(pinned), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_TRUE(pin_memory(pinned).is_same(pinned));
  EXPECT_THAT(numbers(pin_memory(counting({1}, 1).expand({2, 2}))), ElementsAre(1, 1, 1, 1));
}

TEST(Pinned, IsForTheCpu) {
  const Tensor there = zeros({2}, {DType::kF32, kHost0});
  EXPECT_FALSE(is_pinned(there));
  expect_error<DeviceError>([&] { (void)pin_memory(there); }, "pin_memory", "host:0");
  EXPECT_TRUE(is_pinned(empty_pinned({2}, DType::kF32, kHost0)));
  EXPECT_FALSE(is_pinned(empty_pinned({2}, DType::kF32, kCPU)));
  EXPECT_FALSE(is_pinned(empty_pinned({0}, DType::kF32, kHost0)));
}

TEST(Pinned, MemoryGoesBackWithItsTensor) {
  const int64_t before = pinned_allocator().stats().allocated;
  {
    const Tensor tensor = empty_pinned({1 << 10}, DType::kF32, kHost0);
    EXPECT_EQ(pinned_allocator().stats().allocated, before + 4096);
  }
  EXPECT_EQ(pinned_allocator().stats().allocated, before);
}

}  // namespace
}  // namespace lockstep
