// Guarantees of streams and events on every device.

#include "core/tensor/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/event.h"
#include "tests/device/every_device.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

class Streams : public EveryDevice {
 protected:
  Tensor filled(double value) const { return full({1 << 12}, value, {DType::kF32, device()}); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Streams, kEveryDevice, name_of_device);

double first(const Tensor& tensor) { return tensor.to(kCPU).data<float>()[0]; }

TEST_P(Streams, WorkOfOneRunsInOrder) {
  const StreamGuard guard(get_stream_from_pool(device()));
  const Tensor x = filled(1);
  for (int i = 0; i < 20; ++i) {
    mul_(x, 2);
    sub_(x, 1);  // back to 1, if in this order
  }
  mul_(x, 3);
  EXPECT_EQ(first(x), 3);
}

TEST_P(Streams, OneWaitsForWhatAnEventOfAnotherMarks) {
  const Stream first_stream = get_stream_from_pool(device());
  const Stream second_stream = get_stream_from_pool(device());
  Tensor x;
  Event reached;
  {
    const StreamGuard guard(first_stream);
    x = filled(1);
    first_stream.add_callback([] { std::this_thread::sleep_for(milliseconds(20)); });
    add_(x, 4);
    reached.record(first_stream);
  }
  const StreamGuard guard(second_stream);
  second_stream.wait_event(reached);
  x.record_stream(second_stream);
  EXPECT_EQ(first(mul(x, 2)), 10);
}

TEST_P(Streams, ACallbackComesAfterTheWorkBeforeAndBeforeTheWorkAfter) {
  const Stream stream = get_stream_from_pool(device());
  std::atomic<int> calls = 0;
  for (int i = 0; i < 3; ++i) {
    stream.add_callback([&calls, i] {
      if (calls == i) ++calls;
    });
  }
  stream.synchronize();
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(stream.query());
}

TEST_P(Streams, ElapsedTimeIsThatOfTheWorkBetweenTwoEvents) {
  const Stream stream = get_stream_from_pool(device());
  Event start(/*timing=*/true);
  Event end(/*timing=*/true);
  start.record(stream);
  stream.add_callback([] { std::this_thread::sleep_for(milliseconds(20)); });
  end.record(stream);
  end.synchronize();
  EXPECT_GE(start.elapsed_ms(end), 19);
  EXPECT_LT(start.elapsed_ms(end), 10'000);
}

}  // namespace
}  // namespace lockstep
