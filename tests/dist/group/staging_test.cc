#include "dist/group/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "tests/core/device/watched_memory.h"

namespace lockstep::dist {
namespace {

using testing::Each;
using testing::ElementsAre;

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

/// An operation of rank 1 of 3, and how many elements it must find and leave.
struct Counts {
  Operation operation;
  int64_t read;
  int64_t written;
};

Operation of_kind(OpKind kind, int64_t count) {
  Operation operation;
  operation.kind = kind;
  operation.dtype = DType::kF32;
  operation.count = count;
  return operation;
}

std::vector<Counts> every_kind() {
  Operation exchange = of_kind(OpKind::kAllToAll, 0);
  exchange.send_counts = {2, 3, 4};
  exchange.receive_counts = {5, 3, 6};
  Operation from_other = of_kind(OpKind::kBroadcast, 5), from_here = from_other;
  from_here.root = 1;
  Operation to_other = of_kind(OpKind::kReduce, 5), to_here = to_other;
  to_here.root = 1;
  return {{of_kind(OpKind::kAllReduce, 5), 5, 5},
          {of_kind(OpKind::kReduceScatter, 5), 15, 5},
          {of_kind(OpKind::kAllGather, 5), 5, 15},
          {from_other, 0, 5},
          {from_here, 5, 0},
          {to_other, 5, 0},
          {to_here, 5, 5},
          {exchange, 9, 14},
          {of_kind(OpKind::kSend, 5), 5, 0},
          {of_kind(OpKind::kReceive, 5), 0, 5},
          {of_kind(OpKind::kBarrier, 0), 0, 0}};
}

TEST(Staging, CopiesWhatEachOperationReadsAndWritesAndNoMore) {
  constexpr int64_t kRoom = 20;
  for (const auto& [operation, read, written] : every_kind()) {
    SCOPED_TRACE(name(operation.kind) + std::string(" with root ") +
                 std::to_string(operation.root));
    const OwnedStream main(kHost0);
    const StreamGuard guard(main.get());
    Staging staging(kHost0, 1, 3);
    const Tensor input = empty({kRoom}, {DType::kF32, kHost0}).fill_(3);
    const Tensor output = empty({kRoom}, {DType::kF32, kHost0}).fill_(4);
    std::vector<Operation> operations = {operation};
    operations[0].input = input.data();
    operations[0].output = output.data();
    const auto work = std::make_shared<WorkState>();
    work->device = kHost0;
    work->tensors = {input, output};
    work->finished_at_end = true;
    std::vector<float> found;
    staging.start(staging.stage(operations, work), [&](const std::shared_ptr<WorkState>& inner) {
      const auto* const values = static_cast<const float*>(operations[0].input);
      found.assign(values, values + read);
      std::fill_n(static_cast<float*>(operations[0].output), written, 7.0F);
      inner->finish(nullptr);
    });
    work->wait_until_done();
    ASSERT_EQ(work->error, nullptr);
    main.get().wait_event(work->finished);
    EXPECT_THAT(found, Each(3.0F));
    const Tensor left = output.to(kCPU);
    for (int64_t i = 0; i < kRoom; ++i) EXPECT_EQ(left.data<float>()[i], i < written ? 7 : 4) << i;
  }
}

TEST(Staging, CopiesTheSumsOfATreeBesideItsResultThoughThatReplacesTheFirst) {
  constexpr int64_t kColumns = 5;
  constexpr int64_t kStride = 8;  // rows of a tensor of which the tree adds a part
  const OwnedStream main(kHost0);
  const StreamGuard guard(main.get());
  Staging staging(kHost0, 0, 2);
  const Tensor sums = empty({2, kStride}, {DType::kF32, kHost0});
  sums.select(0, 0).fill_(3);
  sums.select(0, 1).fill_(5);
  std::vector<Operation> operations = {of_kind(OpKind::kAllReduce, kColumns)};
  operations[0].deal = LeafDeal::of_counts(std::vector<int64_t>{3, 1});
  operations[0].input_stride = kStride * sizeof(float);
  operations[0].input = operations[0].output = sums.data();
  const auto work = std::make_shared<WorkState>();
  work->device = kHost0;
  work->tensors = {sums};
  work->finished_at_end = true;
  std::vector<float> found;
  staging.start(staging.stage(operations, work), [&](const std::shared_ptr<WorkState>& inner) {
    auto* const output = static_cast<float*>(operations[0].output);
    std::fill_n(output, kColumns, 7.0F);
    const auto* row = static_cast<const std::byte*>(operations[0].input);
    for (int i = 0; i < 2; ++i, row += operations[0].input_stride) {
      const auto* const values = reinterpret_cast<const float*>(row);
      found.insert(found.end(), values, values + kColumns);
    }
    inner->finish(nullptr);
  });
  work->wait_until_done();
  ASSERT_EQ(work->error, nullptr);
  main.get().wait_event(work->finished);
  EXPECT_THAT(found, ElementsAre(3, 3, 3, 3, 3, 5, 5, 5, 5, 5));
  const Tensor left = sums.to(kCPU);
  EXPECT_THAT(std::vector<float>(left.data<float>(), left.data<float>() + 2 * kStride),
              ElementsAre(7, 7, 7, 7, 7, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5));
}

}  // namespace
}  // namespace lockstep::dist
