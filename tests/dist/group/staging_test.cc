#include "dist/group/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "tests/core/device/watched_memory.h"

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

}  // namespace
}  // namespace lockstep::dist
