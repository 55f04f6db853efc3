#include "core/dispatch/op_counter.h"

#include <gtest/gtest.h>

#include "core/ops/conv/conv.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {
namespace {

TEST(OpCounter, CountsALinearLayerAsTransposeAndOneProduct) {
  const Tensor x = ones({8, 256});
  const Tensor weight = ones({512, 256});
  const Tensor bias = ones({512});
  OpCounter counter;
  {
    const ModeGuard on(counter);
    linear(x, weight, bias);
  }
  const OpCounter::Counts& counts = counter.counts(Phase::kForward);
  ASSERT_EQ(counts.size(), 2u) << counter.table();
  EXPECT_EQ(counts.at("t"), (OpCount{1, 0, 0}));
  EXPECT_EQ(counts.at("addmm"),
            (OpCount{1, 2 * 8 * 256 * 512, 4 * (8 * 256 + 512 * 256 + 512 + 8 * 512)}));
}

TEST(OpCounter, TellsBackwardFromForward) {
  const Tensor weight = ones({4, 4}).set_requires_grad();
  const Tensor x = ones({2, 4}).set_requires_grad();
  OpCounter counter;
  {
    const ModeGuard on(counter);
    mm(x, weight).sum().backward();
  }
  EXPECT_EQ(counter.total(Phase::kForward).flops, 2 * 2 * 4 * 4);
  EXPECT_EQ(counter.total(Phase::kBackward).flops, 2 * 2 * 2 * 4 * 4);
  EXPECT_EQ(counter.total().flops, 3 * 2 * 2 * 4 * 4);
  counter.reset();
  EXPECT_EQ(counter.total(), OpCount());
}

TEST(OpCounter, CountsConvolutions) {
  const Tensor image = ones({1, 3, 8, 8});
  const Tensor weight = ones({5, 3, 3, 3});
  OpCounter counter;
  {
    const ModeGuard on(counter);
    conv2d(image, weight, {}, {1}, {1}, {1}, 1);
  }
  EXPECT_EQ(counter.total().flops, 2 * 8 * 8 * 5 * 3 * 3 * 3);
}

TEST(OpCounter, ADestinationIsWrittenOnce) {
  const Tensor x = ones({10});
  OpCounter counter;
  {
    const ModeGuard on(counter);
    x.add_(x);
  }
  EXPECT_EQ(counter.total(), (OpCount{1, 0, 2 * 40})) << "read as self and as other";
}

}  // namespace
}  // namespace lockstep
