#include "dist/group/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/stream.h"
#include "dist/collectives/leaf_deal.h"
#include "tests/core/device/watched_memory.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

constexpr Device kHost0{DeviceType::kHost, 0};
constexpr int64_t kCount = 1000;

/// An all_reduce in place of one tensor, staged for a group of one rank.
class StagingTest : public testing::Test {
 protected:
  StagingTest() : values_(memory_.vector(kCount).fill_(3)) {
    work_->device = kHost0;
    work_->tensors = {values_};
    work_->finished_at_end = true;
    operations_[0].kind = OpKind::kAllReduce;
    operations_[0].dtype = DType::kF32;
    operations_[0].count = kCount;
    operations_[0].input = operations_[0].output = values_.data();
  }

  /// Doubles the copy, as the operation.
  void run() {
    staging_.start(
        staging_.stage(operations_, work_), [this](const std::shared_ptr<WorkState>& inner) {
          const auto* const input = static_cast<const float*>(operations_[0].input);
          std::transform(input, input + kCount, static_cast<float*>(operations_[0].output),
                         [](float value) { return 2 * value; });
          inner->finish(nullptr);
        });
    work_->wait_until_done();
  }
  float last_value() const { return values_.to(kCPU).data<float>()[kCount - 1]; }

  OwnedStream main_{kHost0};
  StreamGuard guard_{main_.get()};
  WatchedMemory memory_{kHost0};
  Tensor values_;
  std::shared_ptr<WorkState> work_ = std::make_shared<WorkState>();
  std::vector<Operation> operations_{1};
  Staging staging_{kHost0, 0, 1};
};

TEST_F(StagingTest, TheOperationUsesACopyWhoseResultComesBack) {
  run();
  ASSERT_EQ(work_->error, nullptr);
  EXPECT_NE(operations_[0].input, values_.data());
  main_.get().wait_event(work_->finished);
  EXPECT_EQ(last_value(), 6);
}

TEST_F(StagingTest, MemoryIsMarkedAsUsedByTheCopiesInEachDirection) {
  run();
  ASSERT_EQ(work_->error, nullptr);
  const std::vector<Stream> uses = memory_.uses();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_NE(uses[0], uses[1]);
  for (const Stream& stream : uses) EXPECT_NE(stream, main_.get());
}

TEST_F(StagingTest, AnOperationThatCannotBeginIsAnErrorAndChangesNothing) {
  staging_.start(staging_.stage(operations_, work_), [](const std::shared_ptr<WorkState>&) {
    throw std::runtime_error("no operation");
  });
  work_->wait_until_done();
  EXPECT_THROW(std::rethrow_exception(work_->error), std::runtime_error);
  EXPECT_EQ(last_value(), 3);
}

/// Calls every operation of `group` with tensors on `device`; returns what each rank then has, on
/// the cpu.
std::vector<Tensor> every_operation(ProcessGroup& group, Device device) {
  const int n = group.size(), rank = group.rank();
  const auto values = [&](int64_t count) {
    const Tensor tensor = empty({count}, DType::kF32);
    std::iota(tensor.data<float>(), tensor.data<float>() + count,
              100.0F * static_cast<float>(rank));
    return tensor.to(device);
  };
  const auto room = [&](int64_t count) { return empty({count}, {DType::kF32, device}).fill_(-1); };
  std::vector<Tensor> results;
  const auto keep = [&](const Tensor& tensor, Work work) {
    work.synchronize();
    results.push_back(tensor.to(kCPU));
  };
  const Tensor summed = values(7), reduced = values(5), sent = values(6);
  keep(summed, group.all_reduce(summed));
  keep(reduced, group.reduce(reduced, 1));
  keep(sent, group.broadcast(sent, 2));
  const Tensor part = room(4), whole = room(4 * n), own = values(4);
  keep(part, group.reduce_scatter(part, values(4 * n)));
  keep(whole, group.all_gather(whole, own));
  // Rank r sends r + i rows to rank i.
  std::vector<int64_t> to, from;
  for (int i = 0; i < n; ++i) to.push_back(rank + i);
  from = to;  // what i sends to this rank is i + rank rows as well
  const int64_t rows = std::accumulate(to.begin(), to.end(), int64_t{0});
  const Tensor exchanged = room(rows);
  keep(exchanged, group.all_to_all(exchanged, values(rows), from, to));
  // Around the ring, begun by rank 0: on a device a message waits for the one before.
  const Tensor received = room(3), message = values(3);
  if (rank == 0) group.send(message, 1).synchronize();
  keep(received, group.recv(received, (rank + n - 1) % n));
  if (rank != 0) group.send(message, (rank + 1) % n).synchronize();
  const auto deal = LeafDeal::even(2 * n, n);
  const auto trees = static_cast<int64_t>(subtrees(deal.of(rank)).size());
  const Tensor tree = room(8), tree_part = room(2);
  keep(tree, group.tree_all_reduce(tree, values(trees * 8).view({trees, 8}), deal));
  keep(tree_part,
       group.tree_reduce_scatter(tree_part, values(trees * 2 * n).view({trees, 2 * n}), deal));
  group.barrier().synchronize();
  return results;
}

TEST(Staging, EveryOperationOnADeviceGivesWhatItGivesOnTheCpu) {
  all_ranks(3, [](ProcessGroup& group) {
    const std::vector<Tensor> expected = every_operation(group, kCPU);
    const std::vector<Tensor> actual = every_operation(group, kHost0);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(equal(actual[i], expected[i])) << "operation " << i;
    }
  });
}

}  // namespace
}  // namespace lockstep::dist
