#include "train/step_share.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "configs/train.pb.h"
#include "tests/core/expect_error.h"

namespace lockstep::train {
namespace {

config::TrainConfig step_of(int64_t batch_size, int64_t micro_batch_size, int64_t leaves) {
  config::TrainConfig train;
  train.set_batch_size(batch_size);
  train.set_micro_batch_size(micro_batch_size);
  train.set_leaves(leaves);
  return train;
}

/// "first_sample+count*size leaves first_leaf/leaves first_micro_batch".
std::string shares(const config::TrainConfig& train, int64_t size) {
  std::string text;
  for (int64_t rank = 0; rank < size; ++rank) {
    const StepShare share = share_of_step(train, rank, size);
    text += fmt::format("{}{}+{}*{} leaves {}+{} micro-batch {}", rank == 0 ? "" : "; ",
                        share.first_sample, share.micro_batches, share.micro_batch_size,
                        share.first_leaf, share.leaves, share.first_micro_batch);
  }
  return text;
}

TEST(StepShare, RanksGetWholeLeavesWhereThereAreEnough) {
  const config::TrainConfig train = step_of(24, 2, 4);  // 3 micro-batches a leaf
  EXPECT_EQ(shares(train, 1), "0+12*2 leaves 0+4 micro-batch 0");
  EXPECT_EQ(shares(train, 2), "0+6*2 leaves 0+2 micro-batch 0; 12+6*2 leaves 2+2 micro-batch 6");
  EXPECT_EQ(shares(train, 4),
            "0+3*2 leaves 0+1 micro-batch 0; 6+3*2 leaves 1+1 micro-batch 3; "
            "12+3*2 leaves 2+1 micro-batch 6; 18+3*2 leaves 3+1 micro-batch 9");
}

TEST(StepShare, MoreRanksThanLeavesGetEquallyManySamples) {
  EXPECT_EQ(shares(step_of(12, 2, 1), 3),
            "0+2*2 leaves 0+1 micro-batch 0; 4+2*2 leaves 0+1 micro-batch 2; "
            "8+2*2 leaves 0+1 micro-batch 4");
  EXPECT_EQ(shares(step_of(12, 4, 1), 2),
            "0+2*3 leaves 0+1 micro-batch 0; 6+2*3 leaves 0+1 micro-batch 2")
      << "the largest micro-batch below 4 that divides 6";
  EXPECT_EQ(shares(step_of(4, 4, 1), 2),
            "0+1*2 leaves 0+1 micro-batch 0; 2+1*2 leaves 0+1 micro-batch 1");
  EXPECT_EQ(shares(step_of(2, 2, 1), 2),
            "0+1*1 leaves 0+1 micro-batch 0; 1+1*1 leaves 0+1 micro-batch 1");
}

TEST(StepShare, LeavesAndStepsEndWithTheirLastMicroBatch) {
  const StepShare share = share_of_step(step_of(24, 2, 4), 1, 2);
  std::string begins, ends;
  for (int64_t i = 0; i < share.micro_batches; ++i) {
    begins += share.begins_leaf(i) ? "1" : "0";
    ends += share.ends_step(i) ? "1" : "0";
  }
  EXPECT_EQ(begins, "100100");
  EXPECT_EQ(ends, "000001");
  EXPECT_EQ(share.end_sample(), 24);
}

TEST(StepShare, SharesAreEvenIfAllRanksHaveAsManyMicroBatches) {
  EXPECT_TRUE(has_even_shares(step_of(24, 2, 4), 1));
  EXPECT_TRUE(has_even_shares(step_of(24, 2, 4), 2));
  EXPECT_FALSE(has_even_shares(step_of(24, 2, 4), 3));
  EXPECT_TRUE(has_even_shares(step_of(24, 2, 1), 3));
}

TEST(StepShare, RefusesWhatCannotBeShared) {
  const config::TrainConfig train = step_of(12, 2, 2);
  expect_error<ConfigError>([&] { (void)share_of_step(train, 0, 5); },
                            "[train] 5 ranks cannot share a step: expected a divisor of "
                            "train.batch_size, which is 12, or at most train.leaves, which is 2.");
  for (const auto& [rank, size] : {std::pair{-1, 2}, std::pair{2, 2}, std::pair{0, 0}}) {
    expect_error<ConfigError>(
        [&] { (void)share_of_step(train, rank, size); },
        fmt::format("[train] expected a rank of 0 to {}, got {}.", size - 1, rank));
  }
  EXPECT_EQ(share_of_step(train, nullptr).micro_batches, 6);
}

}  // namespace
}  // namespace lockstep::train
