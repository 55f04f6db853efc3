// reproducibility: BITWISE gives the same bits on any number of ranks.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

/// BITWISE with buckets of a few parameters each. `more` sets small micro-batches, so that there
/// are leaves for 8 ranks.
std::string bitwise(const std::string& more) {
  return "reproducibility: BITWISE parallel { bucket_mib: 0.02 first_bucket_mib: 0.005 } " + more;
}

TEST(Bitwise, TheNumberOfRanksChangesNoBit) {
  const TemporaryDirectory folder;
  for (const char* more : bitwise_runs_and(
           {// Large enough for the classifier and its loss to be one operator.
            "train { batch_size: 8 micro_batch_size: 1 } precision: BF16_MIXED model { gpt2 { "
            "vocab_size: 16384 context_length: 32 width: 8 } }",
            "train { batch_size: 8 micro_batch_size: 1 } model { llama { vocab_size: 16384 "
            "context_length: 32 layers: 1 heads: 2 kv_heads: 1 width: 8 } }"})) {
    const config::RunConfig config = tiny_run(folder, bitwise(more));
    const Trace one = trace(config, 4);
    for (const int ranks : {2, 3, 4, 6, 8}) {
      for (const Trace& each : traces(config, ranks, 4)) {
        EXPECT_EQ(each, one) << more << ", " << ranks << " ranks";
      }
    }
  }
}

TEST(Bitwise, MicroBatchesOfASizeThatNobodySetAreThoseOfTheLeaves) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, "reproducibility: BITWISE train { batch_size: 16 }");
  const StepShare whole = share_of_step(config.train(), 0, 1);
  EXPECT_EQ(whole.micro_batch_size, 2);
  EXPECT_EQ(whole.micro_batches, 8);
  EXPECT_EQ(whole.leaves, 8);
  const Trace one = trace(config, 3);
  EXPECT_EQ(one,
            trace(tiny_run(folder, bitwise("train { batch_size: 16 micro_batch_size: 2 }")), 3));
  for (const Trace& each : traces(config, 3, 3)) EXPECT_EQ(each, one);
}

TEST(Bitwise, RanksOnADeviceWithStreamsHaveTheBitsOfTheCpu) {
  const TemporaryDirectory folder;
  const std::string more = bitwise("train { batch_size: 8 micro_batch_size: 1 }");
  const Trace one = trace(tiny_run(folder, more), 5);
  for (const int ranks : {1, 2, 3}) {
    for (const Trace& each : traces(tiny_run(folder, more + " device: \"host:0\""), ranks, 5)) {
      EXPECT_EQ(each, one) << ranks << " ranks";
    }
  }
}

TEST(Bitwise, ARunGoesOnOnFewerAndOnMoreRanksWithTheSameBits) {
  const TemporaryDirectory whole;
  const std::string more =
      bitwise("train { batch_size: 8 micro_batch_size: 1 steps: 9 } checkpoint { every_steps: 2 }");
  rethrow_first(run_on_ranks(tiny_run(whole, more), whole, 2));
  const std::string expected = weights_of(whole);
  ASSERT_FALSE(expected.empty());

  const TemporaryDirectory parts;
  const config::RunConfig config = tiny_run(parts, more);
  for (const int ranks : {4, 3}) {
    std::atomic<int> asked = 0;
    const auto errors = run_on_ranks(config, parts, ranks, [&] { return ++asked >= 3; });
    expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
  }
  rethrow_first(run_on_ranks(config, parts, 1));
  EXPECT_TRUE(weights_of(parts) == expected) << "4, then 3, then 1 rank";
}

TEST(Bitwise, WithoutItTheNumberOfRanksMayChangeBits) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, "train { batch_size: 16 micro_batch_size: 1 leaves: 8 }");
  const Trace one = trace(config, 6);
  EXPECT_NE(traces(config, 3, 6)[0], one) << "the tests above would see a difference";
}

TEST(Bitwise, MoreRanksThanLeavesAreRefused) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, bitwise("train { batch_size: 8 micro_batch_size: 1 leaves: 2 }"));
  const auto errors = dist::run_thread_ranks(4, [&](dist::ProcessGroup& group) {
    Trainer trainer = Trainer::create(config, build_task(config), &group);
  });
  for (const std::exception_ptr& error : errors) {
    expect_error<ConfigError>([&] { std::rethrow_exception(error); },
                              "at most 2 ranks (train.leaves), got 4");
  }
}

TEST(Bitwise, HasEightLeavesUnlessToldOtherwise) {
  const TemporaryDirectory folder;
  EXPECT_EQ(
      tiny_run(folder, bitwise("train { batch_size: 8 micro_batch_size: 1 }")).train().leaves(), 8);
  expect_error<config::SourceError>([&] { tiny_run(folder, bitwise("train { batch_size: 4 }")); },
                                    "train.leaves does not divide the number of micro-batches");
}

}  // namespace
}  // namespace lockstep::train
