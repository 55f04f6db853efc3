#include "core/ops/factory/from_blob.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "core/base/error.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/resize.h"
#include "core/ops/view/view.h"
#include "core/tensor/stream.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

TEST(FromBlob, SharesTheMemory) {
  std::array<float, 6> memory = {0, 1, 2, 3, 4, 5};
  const Tensor x = from_blob(memory.data(), {2, 3});
  EXPECT_EQ(x.data(), memory.data());
  memory[4] = 40;
  EXPECT_EQ(x[1][1].item<float>(), 40);
  x[0] = 7;
  EXPECT_EQ(memory[2], 7);
}

TEST(FromBlob, StridesMayLeaveOutElements) {
  std::array<int64_t, 6> memory = {0, 1, 2, 3, 4, 5};
  const Tensor x = from_blob(memory.data(), {2, 2}, IntList({1, 3}), DType::kI64);
  EXPECT_EQ(x[1][1].item<int64_t>(), 4);
}

TEST(FromBlob, TheDeleterIsCalledOnceAfterTheLastView) {
  int calls = 0;
  void* deleted = nullptr;
  std::array<float, 4> memory = {};
  {
    Tensor view;
    {
      const Tensor x = from_blob(memory.data(), {4}, [&](void* data) {
        ++calls;
        deleted = data;
      });
      view = x.slice(0, 1);
    }
    EXPECT_EQ(calls, 0);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(deleted, memory.data());
}

TEST(FromBlob, TheDeleterIsCalledAlsoAfterAnError) {
  int calls = 0;
  std::array<float, 4> memory = {};
  const auto count = [&](void*) { ++calls; };
  EXPECT_THROW(from_blob(memory.data(), {-1}, count), ShapeError);
  EXPECT_THROW(from_blob(memory.data(), {2}, IntList({1, 1}), count), ShapeError);
  EXPECT_EQ(calls, 2);
}

TEST(FromBlob, TheMemoryIsNeitherGrownNorTakenOver) {
  std::array<float, 4> memory = {};
  const Tensor x = from_blob(memory.data(), {4});
  const Tensor y = from_blob(memory.data(), {4}, [](void*) {});
  for (const Tensor& tensor : {x, y}) {
    EXPECT_THROW(tensor.resize_({5}), DeviceError);
    EXPECT_FALSE(tensor.storage()->owns_memory());
    tensor.resize_({2});
    EXPECT_EQ(tensor.data(), memory.data());
  }
}

TEST(FromBlob, TheDeleterComesAfterQueuedWorkOfItsStreams) {
  for (const bool recorded : {false, true}) {
    const OwnedStream stream(kHost0);
    std::array<float, 4> memory = {};
    std::atomic<bool> worked = false, worked_first = false;
    Gate gate;
    Tensor x;
    const auto look = [&](void*) { worked_first = worked.load(); };
    {
      const StreamGuard guard(recorded ? default_stream(kHost0) : stream.get());
      x = from_blob(memory.data(), {4}, look, kHost0);
    }
    if (recorded) x.slice(0, 1).record_stream(stream.get());
    gate.hold(stream.get());
    queue(stream.get(), [&] { worked = true; });
    std::thread opener([&] { gate.open(); });
    x = {};
    opener.join();
    EXPECT_TRUE(worked_first);
  }
}

TEST(FromBlob, WrongArgumentsAreRefused) {
  std::array<float, 4> memory = {};
  EXPECT_THROW(from_blob(memory.data(), {2, -2}), ShapeError);
  EXPECT_THROW(from_blob(memory.data(), {2}, IntList({-1})), ShapeError);
  expect_error<DeviceError>([] { from_blob(nullptr, {2}); }, "null", "8 bytes");
  EXPECT_EQ(from_blob(nullptr, {0}).numel(), 0);
}

TEST(FromBlob, MayRequireGrad) {
  std::array<float, 2> memory = {1, 2};
  TensorOptions options;
  options.requires_grad = true;
  const Tensor x = from_blob(memory.data(), {2}, options);
  x.mul(x).sum().backward();
  EXPECT_EQ(x.grad()[1].item<float>(), 4);
}

}  // namespace
}  // namespace lockstep
