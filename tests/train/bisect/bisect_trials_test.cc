// Last bits of random operators, which bisect has to name.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "tests/train/bisect/random_flip.h"
#include "tests/train/bisect/recorded_runs.h"
#include "tests/train/rank_runs.h"
#include "train/bisect/bisect.h"

namespace lockstep::train {
namespace {

/// As many trials as TEST_BISECT_TRIALS says, where it is set.
int trials(int without) {
  const char* const text = std::getenv("TEST_BISECT_TRIALS");
  return text != nullptr ? std::atoi(text) : without;
}

void expect_found(const Bisection& result, const config::BitFlip& flip, const std::string& text) {
  ASSERT_TRUE(result.found) << to_text(flip) << "\n" << text;
  EXPECT_EQ(result.found->part, (StepPart{flip.step - 1, flip.micro_batch})) << to_text(flip);
  EXPECT_EQ(result.found->operator_name, flip.operator_name) << to_text(flip);
  EXPECT_EQ(result.found->call, flip.call) << to_text(flip);
  ASSERT_TRUE(result.found->element) << to_text(flip);
  EXPECT_EQ(result.found->element->tensor, static_cast<size_t>(flip.result)) << to_text(flip);
  EXPECT_EQ(result.found->element->element, flip.element) << to_text(flip);
}

TEST(BisectTrials, NamesTheOperatorOfARandomLastBit) {
  const TemporaryDirectory folder;
  const RecordedRun a = recorded(folder, "a", six_steps(folder));
  std::mt19937 random(25);
  for (int trial = 0; trial < trials(5); ++trial) {
    const config::BitFlip flip =
        random_flip(a, random, [](const auto&, const auto&) { return true; });
    const RecordedRun b =
        recorded(folder, "b" + std::to_string(trial), six_steps(folder, flipped(to_text(flip))));
    // The bit may be lost in what follows: losses and weights are then the same.
    const Bisection result = bisect(a, b, {.replay_equal = true});
    expect_found(result, flip, describe(result, a, b));
    std::filesystem::remove_all(b.directory.path());
  }
}

/// Sums over leaves are shared out among ranks, and belong to no micro-batch of one's own.
bool is_of_a_micro_batch(const TracedPart& part, const TracedCall& call) {
  const std::string& name = call.op->name();
  return part.part.micro_batch && name != "add_.Tensor" && name != "copy_";
}

TEST(BisectTrials, NamesTheOperatorOfARandomLastBitOfTwoOrThreeRanks) {
  const TemporaryDirectory folder;
  const RecordedRun a = recorded(folder, "a", bitwise_steps(folder));
  std::mt19937 random(26);
  for (int trial = 0; trial < trials(2); ++trial) {
    const config::BitFlip flip = random_flip(a, random, is_of_a_micro_batch);
    rethrow_first(
        run_on_ranks(bitwise_steps(folder, flipped(to_text(flip))), folder, 2 + trial % 2));
    const RecordedRun b = read_run(folder / "run");
    const Bisection result = bisect(a, b, {.replay_equal = true});
    expect_found(result, flip, describe(result, a, b));
    EXPECT_TRUE(result.unrepeated.empty()) << to_text(flip) << "\n" << describe(result, a, b);
    std::filesystem::remove_all(b.directory.path());
  }
}

TEST(BisectTrials, NamesTheOperatorOfARandomLastBitOfRanksWithoutBitwise) {
  const TemporaryDirectory folder;
  const RecordedRun alone = recorded(folder, "alone", six_steps(folder));
  // What backward calls depends on which micro-batch of its rank it is in.
  const auto is_forward = [](const TracedPart& part, const TracedCall& call) {
    return part.part.micro_batch && call.phase == Phase::kForward && call.op->name() != "copy_";
  };
  std::mt19937 random(28);
  for (int trial = 0; trial < trials(2); ++trial) {
    const std::string parallel = trial % 2 == 0 ? "" : "parallel { strategy: FULL_SHARD } ";
    const std::string name = std::to_string(trial);
    const config::BitFlip flip = random_flip(alone, random, is_forward);
    const RecordedRun a = recorded_on(2, folder, "a" + name, six_steps(folder, parallel));
    const RecordedRun b =
        recorded_on(2, folder, "b" + name, six_steps(folder, parallel + flipped(to_text(flip))));
    const Bisection result = bisect(a, b, {.replay_equal = true});
    expect_found(result, flip, describe(result, a, b));
    EXPECT_EQ(result.found->rank, *flip.micro_batch / 2) << to_text(flip);
    EXPECT_TRUE(result.unrepeated.empty()) << to_text(flip) << "\n" << describe(result, a, b);
    for (const RecordedRun* each : {&a, &b}) std::filesystem::remove_all(each->directory.path());
  }
}

}  // namespace
}  // namespace lockstep::train
