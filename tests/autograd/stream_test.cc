// Backward on streams of the host device.

#include <gtest/gtest.h>

#include <cstring>

#include "autograd/hooks.h"
#include "autograd/node.h"
#include "core/event.h"
#include "core/ops/copy.h"
#include "core/ops/factory.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/random.h"
#include "core/queued_kernel.h"

namespace lockstep {
namespace {

const Device kHost{DeviceType::kHost, 0};

Tensor on_host(IntList sizes) { return randn(sizes).to(kHost); }

double first(const Tensor& tensor) { return tensor.to(kCPU).data<float>()[0]; }

TEST(BackwardStreams, ANodeRemembersTheStreamOfItsForward) {
  const Tensor x = on_host({4}).set_requires_grad();
  const Stream side = get_stream_from_pool(kHost);
  Tensor y;
  {
    const StreamGuard guard(side);
    side.wait_stream(default_stream(kHost));
    y = x.mul(x);
  }
  EXPECT_EQ(y.grad_fn()->outputs()[0].stream, side.id);
  EXPECT_EQ(x.mul(x).grad_fn()->outputs()[0].stream, 0);
}

TEST(BackwardStreams, BackwardOperatorsRunWhereTheirForwardDid) {
  const Tensor x = on_host({4}).set_requires_grad();
  const Stream side = get_stream_from_pool(kHost);
  side.wait_stream(default_stream(kHost));
  int32_t seen = -1;
  Tensor y;
  {
    const StreamGuard guard(side);
    y = x.mul(x);
  }
  y.register_hook([&](const Tensor&) {
    seen = current_stream(kHost).id;
    return Tensor();
  });
  default_stream(kHost).wait_stream(side);
  y.sum().backward();
  EXPECT_EQ(seen, side.id);
  EXPECT_EQ(current_stream(kHost).id, 0);
}

TEST(BackwardStreams, TheCallersStreamWaitsForTheLeaves) {
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
    const Tensor x = a.to(kHost).set_requires_grad();
    const Tensor w = b.to(kHost);
    const Stream first_side = get_stream_from_pool(kHost);
    const Stream second_side = get_stream_from_pool(kHost);
    Tensor y;
    Tensor z;
    {
      const StreamGuard guard(first_side);
      first_side.wait_stream(default_stream(kHost));
      y = x.matmul(w);
    }
    {
      const StreamGuard guard(second_side);
      second_side.wait_stream(first_side);
      y.record_stream(second_side);
      z = y.matmul(w).sum();
    }
    default_stream(kHost).wait_stream(second_side);
    z.record_stream(default_stream(kHost));
    z.backward();
    // Read on the caller's stream, which must be behind the leaf's.
    const Tensor found = mul(x.grad(), 1).to(kCPU);
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.nbytes()), 0);
  }
}

TEST(BackwardStreams, GradientsFromTwoStreamsAreSummed) {
  const Tensor x = full({8}, 3, {DType::kF32, kHost}).set_requires_grad();
  const Stream one = get_stream_from_pool(kHost);
  const Stream two = get_stream_from_pool(kHost);
  Tensor a;
  Tensor b;
  {
    const StreamGuard guard(one);
    one.wait_stream(default_stream(kHost));
    a = x.mul(x).sum();
  }
  {
    const StreamGuard guard(two);
    two.wait_stream(default_stream(kHost));
    b = mul(x, 2).sum();
  }
  const Stream main = default_stream(kHost);
  main.wait_stream(one);
  main.wait_stream(two);
  a.record_stream(main);
  b.record_stream(main);
  a.add(b).backward();
  EXPECT_EQ(first(x.grad()), 8);
}

}  // namespace
}  // namespace lockstep
