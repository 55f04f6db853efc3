// Backward on the streams of every device.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/hooks.h"
#include "autograd/node.h"
#include "core/device/active_capture.h"
#include "core/device/stream_sanitizer.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/capture_scope.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/event.h"
#include "tests/core/device/sanitized_streams.h"
#include "tests/device/every_device.h"

namespace lockstep {
namespace {

class BackwardStreams : public EveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, BackwardStreams, kEveryDevice, name_of_device);

double first(const Tensor& tensor) { return tensor.to(kCPU).data<float>()[0]; }

TEST_P(BackwardStreams, ANodeRemembersTheStreamOfItsForward) {
  const Tensor x = randn({4}).to(device()).set_requires_grad();
  const Stream side = get_stream_from_pool(device());
  Tensor y;
  {
    const StreamGuard guard(side);
    side.wait_stream(default_stream(device()));
    y = x.mul(x);
  }
  EXPECT_EQ(y.grad_fn()->outputs()[0].stream, side.id);
  EXPECT_EQ(x.mul(x).grad_fn()->outputs()[0].stream, 0);
}

TEST_P(BackwardStreams, BackwardOperatorsRunWhereTheirForwardDid) {
  const Tensor x = randn({4}).to(device()).set_requires_grad();
  const Stream side = get_stream_from_pool(device());
  side.wait_stream(default_stream(device()));
  int32_t seen = -1;
  Tensor y;
  {
    const StreamGuard guard(side);
    y = x.mul(x);
  }
  y.register_hook([&](const Tensor&) {
    seen = current_stream(device()).id;
    return Tensor();
  });
  default_stream(device()).wait_stream(side);
  y.sum().backward();
  EXPECT_EQ(seen, side.id);
  EXPECT_EQ(current_stream(device()).id, 0);
}

TEST_P(BackwardStreams, TheCallersStreamWaitsForTheLeaves) {
  manual_seed(3);
  const Tensor a = randn({64, 64});
  const Tensor b = randn({64, 64});
  Tensor expected;
  {
    const Tensor x = a.clone().set_requires_grad();
    x.matmul(b).matmul(b).sum().backward();
    expected = x.grad();
  }
  for (int i = 0; i < 20; ++i) {
    const Tensor x = a.clone().to(device()).set_requires_grad();
    const Tensor w = b.to(device());
    const Stream first_side = get_stream_from_pool(device());
    const Stream second_side = get_stream_from_pool(device());
    Tensor y;
    Tensor z;
    {
      const StreamGuard guard(first_side);
      first_side.wait_stream(default_stream(device()));
      y = x.matmul(w);
    }
    {
      const StreamGuard guard(second_side);
      second_side.wait_stream(first_side);
      y.record_stream(second_side);
      z = y.matmul(w).sum();
    }
    default_stream(device()).wait_stream(second_side);
    z.record_stream(default_stream(device()));
    z.backward();
    // Read on the caller's stream, which backward must have ordered after the leaf's stream.
    const Tensor found = mul(x.grad(), 1).to(kCPU);
    if (has_bits_of_the_cpu()) {
      ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.nbytes()), 0);
    }
    ASSERT_LT(max(abs(found - expected)).item<float>(), 1e-2F * max(abs(expected)).item<float>());
  }
}

TEST_P(BackwardStreams, GradientsFromTwoStreamsAreSummed) {
  const Tensor x = full({8}, 3, {DType::kF32, device()}).set_requires_grad();
  const Stream one = get_stream_from_pool(device());
  const Stream two = get_stream_from_pool(device());
  Tensor a;
  Tensor b;
  {
    const StreamGuard guard(one);
    one.wait_stream(default_stream(device()));
    a = x.mul(x).sum();
  }
  {
    const StreamGuard guard(two);
    two.wait_stream(default_stream(device()));
    b = mul(x, 2).sum();
  }
  const Stream main = default_stream(device());
  main.wait_stream(one);
  main.wait_stream(two);
  a.record_stream(main);
  b.record_stream(main);
  a.add(b).backward();
  EXPECT_EQ(first(x.grad()), 8);
}

TEST(BackwardStreamsOfTheHost, AGradientIsNotOverwrittenWhileTheStreamThatTookItReadsIt) {
  const SanitizedStreams sanitized;
  const TensorOptions options{DType::kF32, Device{DeviceType::kHost, 0}};
  const OwnedStream main(*options.device);
  const OwnedStream side(*options.device);
  const StreamGuard on_main(main.get());
  const Tensor x = full({1 << 16}, 3, options).set_requires_grad();
  const Tensor y = x.mul(x);
  Tensor z;
  side.get().wait_stream(main.get());
  {
    const StreamGuard on_side(side.get());
    y.record_stream(side.get());
    z = y.mul(y).sum();
    z.record_stream(main.get());
  }
  main.get().wait_stream(side.get());
  caching_allocator(*options.device).empty_cache();
  z.backward();
  // The gradient of y was made on the side stream, and freed when its reader on the main stream was
  // queued. Nothing makes the side stream wait for that reader but the allocator.
  {
    const StreamGuard on_side(side.get());
    std::vector<Tensor> next;
    for (int i = 0; i < 64; ++i) next.push_back(empty({1 << 16}, options).fill_(1));
  }
  EXPECT_EQ(stream_sanitizer::reports(), 0);
  EXPECT_EQ(first(x.grad()), 4 * 3 * 3 * 3);
}

TEST(BackwardStreamsOfTheHost, AGradientOfTwoStreamsIsNotAddedToBeforeTheOtherHasReadIt) {
  const TensorOptions options{DType::kF32, Device{DeviceType::kHost, 0}};
  const OwnedStream main(*options.device);
  const OwnedStream side(*options.device);
  const StreamGuard on_main(main.get());
  for (const size_t at : {0, 1}) {
    std::vector<Tensor> leaves;
    for (const size_t each : {0, 1}) {
      const StreamGuard there(each == at ? side.get() : main.get());
      leaves.push_back(full({8}, 3, options).set_requires_grad());
    }
    main.get().wait_stream(side.get());
    std::atomic<bool> open = false;
    side.get().add_callback([&] { open.wait(false); });
    // One gradient goes to both leaves first. Then each has another one, which is added to it.
    const Tensor others = sum(leaves[0] * 2.0) + sum(leaves[1] * 2.0);
    (others + sum((leaves[0] + leaves[1]) * 5.0)).backward();
    std::thread opens([&] {  // when additions that do not wait would be done
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      open = true;
      open.notify_all();
    });
    for (const Tensor& leaf : leaves) EXPECT_EQ(first(leaf.grad()), 7) << at;
    opens.join();
  }
}

TEST(BackwardStreamsOfTheHost, TheDevicesThreadTakesPartInTheCaptureOfTheCaller) {
  const Device host{DeviceType::kHost, 0};
  CachingAllocator& memory = caching_allocator(host);
  const ActiveCapture capture{default_stream(host), &memory, memory.create_pool()};
  std::thread::id thread;
  const ActiveCapture* seen = nullptr;
  {
    const Tensor x = full({4}, 3, {DType::kF32, host}).set_requires_grad();
    const Tensor y = x.mul(x);
    y.register_hook([&](const Tensor&) {
      thread = std::this_thread::get_id();
      seen = active_capture();
      return Tensor();
    });
    const Tensor sum = y.sum();
    const CaptureScope capturing(&capture);
    sum.backward();
  }
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(seen, &capture);
  memory.release_pool(capture.pool);
}

TEST(BackwardStreamsOfTheHost, TheCallersStreamWaitsForLeavesOfOtherStreams) {
  const SanitizedStreams sanitized;
  const TensorOptions options{DType::kF32, Device{DeviceType::kHost, 0}};
  const OwnedStream main(*options.device);
  const OwnedStream one(*options.device);
  const OwnedStream two(*options.device);
  const StreamGuard on_main(main.get());
  std::vector<Tensor> leaves;
  std::vector<Tensor> roots;
  for (const OwnedStream* side : {&one, &two}) {
    {
      const StreamGuard on_side(side->get());
      leaves.push_back(full({1 << 16}, 3, options).set_requires_grad());
      roots.push_back(leaves.back().mul(leaves.back()).sum());
      roots.back().record_stream(main.get());
    }
    main.get().wait_stream(side->get());
  }
  backward(roots);
  for (const Tensor& leaf : leaves) EXPECT_EQ(first(mul(leaf.grad(), 1)), 6);
  EXPECT_EQ(stream_sanitizer::reports(), 0);
}

TEST(BackwardStreamsOfTheHost, ARootThatIsGivenTwiceIsSummedOnItsStream) {
  const SanitizedStreams sanitized;
  const TensorOptions options{DType::kF32, Device{DeviceType::kHost, 0}};
  const OwnedStream main(*options.device);
  const OwnedStream side(*options.device);
  const StreamGuard on_main(main.get());
  const Tensor x = full({8}, 3, options).set_requires_grad();
  Tensor y;
  side.get().wait_stream(main.get());
  {
    const StreamGuard on_side(side.get());
    y = x.mul(x).sum();
    y.record_stream(main.get());
  }
  main.get().wait_stream(side.get());
  backward({y, y});
  EXPECT_EQ(stream_sanitizer::reports(), 0);
  EXPECT_EQ(first(x.grad()), 2 * 2 * 3);
}

}  // namespace
}  // namespace lockstep
