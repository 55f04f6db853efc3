#include "train/run/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/rank_runs.h"
#include "train/report/metrics_history.h"

namespace lockstep::train {
namespace {

using dist::LeafDeal;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> counts_by_speed(const std::vector<int64_t>& counts,
                                     const std::vector<int64_t>& work_us) {
  return deal_by_speed(LeafDeal::of_counts(counts), work_us).counts();
}

/// The longest work, if a leaf costs each rank as much as in `work_us` of `before` leaves.
double longest(const std::vector<int64_t>& counts, const std::vector<int64_t>& before,
               const std::vector<int64_t>& work_us) {
  double most = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    most = std::max(most, static_cast<double>(work_us[i]) * static_cast<double>(counts[i]) /
                              static_cast<double>(before[i]));
  }
  return most;
}

TEST(DealBySpeed, ARankAtHalfSpeedGetsHalfAsManyLeaves) {
  EXPECT_THAT(counts_by_speed({6, 6}, {600, 1200}), ElementsAre(8, 4));
  EXPECT_THAT(counts_by_speed({16, 16}, {1600, 3200}), ElementsAre(22, 10));
  EXPECT_THAT(counts_by_speed({4, 4, 4}, {400, 800, 400}), ElementsAre(5, 2, 5));
}

TEST(DealBySpeed, EveryRankKeepsALeaf) {
  EXPECT_THAT(counts_by_speed({4, 4}, {1, 1'000'000}), ElementsAre(7, 1));
  EXPECT_THAT(counts_by_speed({1, 7}, {1'000'000, 7}), ElementsAre(1, 7));
}

TEST(DealBySpeed, WhatGainsLessThanATwentiethMovesNothing) {
  EXPECT_THAT(counts_by_speed({32, 32}, {3200, 3400}), ElementsAre(32, 32));
  EXPECT_THAT(counts_by_speed({32, 32}, {3200, 3700}), ElementsAre(34, 30));
  // One leaf of three more would be worse.
  EXPECT_THAT(counts_by_speed({3, 3}, {300, 340}), ElementsAre(3, 3));
  EXPECT_THAT(counts_by_speed({2, 3, 3}, {200, 300, 300}), ElementsAre(2, 3, 3));
}

TEST(DealBySpeed, TimesFarApartAreComparedWithoutOverflow) {
  constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(counts_by_speed({2048, 2048}, {kForever, 1}), ElementsAre(1, 4095));
  EXPECT_THAT(counts_by_speed({2, 2}, {kForever, kForever}), ElementsAre(2, 2));
}

RC_GTEST_PROP(DealBySpeed, NoDealIsMuchBetterThanTheOneThatItReturns, ()) {
  const auto ranks = *rc::gen::inRange<size_t>(1, 4);
  const auto before =
      *rc::gen::container<std::vector<int64_t>>(ranks, rc::gen::inRange<int64_t>(1, 7));
  const auto work_us =
      *rc::gen::container<std::vector<int64_t>>(ranks, rc::gen::inRange<int64_t>(1, 5000));
  const LeafDeal now = LeafDeal::of_counts(before);
  const LeafDeal deal = deal_by_speed(now, work_us);
  RC_ASSERT(deal.leaves() == now.leaves());
  RC_ASSERT(deal.ranks() == now.ranks());
  const double found = longest(deal.counts(), before, work_us);
  const double kept = longest(before, before, work_us);
  RC_ASSERT(deal == now || found <= 0.95 * kept * (1 + 1e-12));
  // Of all deals of up to three ranks the best.
  double best = kept;
  const int64_t leaves = now.leaves();
  for (int64_t first = 1; first <= leaves; ++first) {
    for (int64_t second = 0; second <= leaves - first; ++second) {
      std::vector<int64_t> counts = {first, second, leaves - first - second};
      std::erase(counts, 0);
      if (counts.size() == ranks) best = std::min(best, longest(counts, before, work_us));
    }
  }
  RC_ASSERT(found <= best * (1 + 1e-12) || (deal == now && best > 0.95 * kept * (1 - 1e-12)));
}

TEST(RankWithMostSums, IsThatOfTheDealThatNeedsMost) {
  EXPECT_EQ(dist::stack_depth(rank_with_most_sums(8, 3).deal.of(rank_with_most_sums(8, 3).rank)),
            4);
  EXPECT_THAT(rank_with_most_sums(8, 1).deal.counts(), ElementsAre(8));
  EXPECT_THAT(rank_with_most_sums(4, 4).deal.counts(), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(rank_with_most_sums(4, 2).deal.counts(), ElementsAre(1, 3));
  EXPECT_EQ(rank_with_most_sums(4, 2).rank, 1);
}

RC_GTEST_PROP(RankWithMostSums, NoDealHasARankWithMore, ()) {
  const auto leaves = *rc::gen::inRange<int64_t>(1, 40);
  const auto ranks = *rc::gen::inRange<int>(1, static_cast<int>(std::min<int64_t>(leaves, 6)) + 1);
  const DealtRank found = rank_with_most_sums(leaves, ranks);
  RC_ASSERT(found.deal.leaves() == leaves);
  RC_ASSERT(found.deal.ranks() == ranks);
  const int most = dist::stack_depth(found.deal.of(found.rank));
  for (int64_t first = 0; first < leaves; ++first) {
    for (int64_t end = first + 1; end <= leaves; ++end) {
      const int64_t others = leaves - (end - first);
      const int sides = (first > 0 ? 1 : 0) + (end < leaves ? 1 : 0);
      if (sides > ranks - 1 || others < ranks - 1) continue;
      if (others > 0 && ranks == 1) continue;
      RC_ASSERT(dist::stack_depth({first, end}) <= most);
    }
  }
}

RankComparison comparison_of(const std::vector<double>& compute_ms) {
  RankComparison comparison{.steps = 5, .ranks = {}};
  for (size_t rank = 0; rank < compute_ms.size(); ++rank) {
    comparison.ranks.push_back(
        {.rank = static_cast<int>(rank), .compute_ms = compute_ms[rank], .exposed_ms = 1});
  }
  return comparison;
}

TEST(Balance, DecidesFromTheSecondComparisonWithADealOn) {
  Balance balance;
  LeafDeal deal = LeafDeal::even(12, 2);
  EXPECT_FALSE(balance.next(deal, comparison_of({60, 120})));
  const auto next = balance.next(deal, comparison_of({60, 120}));
  ASSERT_TRUE(next);
  EXPECT_THAT(next->counts(), ElementsAre(8, 4));
  EXPECT_FALSE(balance.next(*next, comparison_of({120, 60}))) << "the first with this deal";
}

TEST(Balance, WhatHeldUpARankOnceMovesNoLeaf) {
  Balance balance;
  const LeafDeal deal = LeafDeal::even(12, 2);
  EXPECT_FALSE(balance.next(deal, comparison_of({60, 900})));  // the start, for example
  for (const double once : {60, 700, 60, 60, 300, 60}) {
    EXPECT_FALSE(balance.next(deal, comparison_of({60, once})));
  }
}

TEST(Balance, ARankThatWaitsForItsDataLongerGetsFewerLeaves) {
  Balance balance;
  RankComparison comparison = comparison_of({60, 60});
  comparison.ranks[0].data_ms = 60;
  EXPECT_FALSE(balance.next(LeafDeal::even(12, 2), comparison));
  EXPECT_THAT(balance.next(LeafDeal::even(12, 2), comparison)->counts(), ElementsAre(4, 8));
}

/// Ranks with a cost for each step and for each leaf, and times that vary by 2 %.
RC_GTEST_PROP(Balance, ChangesAFewTimesAndMakesNoStepLonger, ()) {
  const auto ranks = *rc::gen::inRange<size_t>(2, 7);
  const auto fixed = *rc::gen::container<std::vector<int>>(ranks, rc::gen::inRange(0, 30));
  const auto leaf = *rc::gen::container<std::vector<int>>(ranks, rc::gen::inRange(10, 40));
  const auto noise = *rc::gen::container<std::vector<int>>(400, rc::gen::inRange(0, 21));
  LeafDeal deal = LeafDeal::even(*rc::gen::inRange<int64_t>(static_cast<int64_t>(ranks), 64),
                                 static_cast<int>(ranks));
  const auto times = [&](const LeafDeal& of, size_t round) {
    std::vector<double> ms;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const int64_t leaves = of.counts()[rank];
      ms.push_back((fixed[rank] + leaf[rank] * static_cast<double>(leaves)) *
                   (1 + 1e-3 * noise[(round * ranks + rank) % noise.size()]));
    }
    return ms;
  };
  Balance balance;
  const double at_first = std::ranges::max(times(deal, 0));
  int changes = 0;
  for (size_t round = 0; round < 60; ++round) {
    if (const auto next = balance.next(deal, comparison_of(times(deal, round)))) {
      deal = *next;
      ++changes;
    }
  }
  RC_ASSERT(changes <= 6);
  RC_ASSERT(std::ranges::max(times(deal, 0)) <= 1.021 * at_first);
}

TEST(DealText, NamesTheLeavesOfEachRankOrTheirRange) {
  EXPECT_EQ(deal_text(LeafDeal::of_counts(std::vector<int64_t>{5, 3}), LeafDeal::even(8, 2)),
            "5 + 3 leaves by rank instead of 4 + 4");
  std::vector<int64_t> many(17, 2);
  many[3] = 5;
  EXPECT_EQ(deal_text(LeafDeal::of_counts(many), LeafDeal::even(37, 17)),
            "2 to 5 leaves by rank instead of 2 to 3");
}

// --- runs ----------------------------------------------------------------------------------------

/// A task whose forward passes take longer: by a multiple of what they took, so that a busy
/// machine, where every rank is slow, leaves this one the slowest.
class SlowTask final : public ForwardingTask {
 public:
  using ForwardingTask::ForwardingTask;
  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    const auto start = std::chrono::steady_clock::now();
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    std::this_thread::sleep_for(
        std::max<std::chrono::nanoseconds>(std::chrono::milliseconds(20), 15 * took));
    return loss;
  }
};

std::string balanced_run(int leaves, const std::string& more) {
  return fmt::format(
      "train {{ steps: 22 batch_size: 8 micro_batch_size: 1 leaves: {} }} reproducibility: BITWISE "
      "{}",
      leaves, more);
}

struct Balanced {
  std::string terminal, metrics, weights;
};

/// Trains `folder`/run on three ranks, of which the first is much slower than the others.
RunEnd train_with_a_slow_rank(const TemporaryDirectory& folder, const std::string& more,
                              const StopRequest& stop = {}) {
  const config::RunConfig config = tiny_run(folder, balanced_run(8, more));
  RunEnd end = RunEnd::kStopped;
  std::FILE* const terminal = std::fopen((folder / "terminal").c_str(), "a");
  rethrow_first(dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    const StreamGuard own_stream(get_stream_from_pool(parse_device(config.device())));
    if (group.rank() != 0) {
      follow_training(config, group, {});
      return;
    }
    TrainingRun run(
        config, RunDirectory::create_at(folder / "run", RunDirectory::Existing::kContinue), "{}",
        std::make_unique<SlowTask>(build_task(config, share_of_step(config.train(), &group))),
        &group);
    end = run.run({.terminal = terminal, .stop = stop}).end;
  }));
  std::fclose(terminal);
  return end;
}

Balanced run_with_a_slow_rank(const std::string& more) {
  const TemporaryDirectory folder;
  (void)train_with_a_slow_rank(folder, more);
  return {file_content(folder / "terminal"), file_content(folder / "run/metrics.jsonl"),
          weights_of(folder)};
}

TEST(BalancedRun, LeavesOfASlowRankMoveToTheOthersAndNoBitChanges) {
  const Balanced even = run_with_a_slow_rank("");
  EXPECT_THAT(even.metrics, Not(HasSubstr("rank_leaves")));
  ASSERT_FALSE(even.weights.empty());
  // On a device with streams the step after a change was begun ahead, and is begun again.
  for (const char* more : {"parallel { balance: SPEED } audit { every_steps: 2 }",
                           "parallel { balance: SPEED strategy: SHARD_OPTIMIZER }",
                           "parallel { balance: SPEED } device: \"host:0\""}) {
    const Balanced speed = run_with_a_slow_rank(more);
    EXPECT_THAT(speed.metrics, HasSubstr("\"rank_leaves\":[2,3,3]")) << more;
    EXPECT_THAT(speed.metrics, HasSubstr("\"rank_leaves\":[1,")) << more;
    EXPECT_THAT(speed.terminal, HasSubstr("balance: 1 + ")) << more;
    EXPECT_THAT(speed.terminal, HasSubstr(" leaves by rank instead of 2 + 3 + 3")) << more;
    EXPECT_THAT(speed.metrics, Not(HasSubstr("\"audit\""))) << more;
    EXPECT_TRUE(speed.weights == even.weights) << more;
  }
}

TEST(BalancedRun, StoppedWhileTheDealIsUnevenItGoesOnWithTheSameBits) {
  const Balanced even = run_with_a_slow_rank("");
  for (const char* more :
       {"parallel { balance: SPEED }", "parallel { balance: SPEED strategy: SHARD_OPTIMIZER }",
        "parallel { balance: SPEED } checkpoint { asynchronous: true }"}) {
    const TemporaryDirectory folder;
    const auto metrics = [&] { return file_content(folder / "run/metrics.jsonl"); };
    // As a signal asks: from the first uneven step on, which may be under way.
    const StopRequest stop = [&] {
      return std::filesystem::exists(folder / "run/metrics.jsonl") &&
             says(metrics(), "\"rank_leaves\":[1,");
    };
    ASSERT_EQ(train_with_a_slow_rank(folder, more, stop), RunEnd::kStopped) << more;
    const std::string before = metrics();
    EXPECT_THAT(before, Not(HasSubstr("\"step\":22,"))) << more;
    ASSERT_EQ(train_with_a_slow_rank(folder, more), RunEnd::kFinished) << more;
    EXPECT_THAT(metrics().substr(before.size()), HasSubstr("\"rank_leaves\":[2,3,3]"))
        << "begins evenly: " << more;
    EXPECT_TRUE(weights_of(folder) == even.weights) << more;
  }
}

TEST(BalancedRun, NeedsMoreLeavesThanRanks) {
  const TemporaryDirectory folder;
  for (const char* more :
       {"parallel { balance: SPEED }", "parallel { balance: SPEED strategy: SHARD_OPTIMIZER }"}) {
    const config::RunConfig config = tiny_run(folder, balanced_run(2, more));
    for (const std::exception_ptr& error : run_on_ranks(config, folder, 2)) {
      expect_error<ConfigError>([&] { std::rethrow_exception(error); },
                                "[train] parallel.balance: SPEED moves leaves between ranks: "
                                "expected more leaves (train.leaves) than the 2 ranks, got 2");
    }
  }
}

TEST(BalancedRun, OneRankAloneHasNothingToMove) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, balanced_run(8, "parallel { balance: SPEED }"));
  rethrow_first(run_on_ranks(config, folder, 1));
  EXPECT_THAT(file_content(folder / "run/metrics.jsonl"), Not(HasSubstr("rank_leaves")));
}

}  // namespace
}  // namespace lockstep::train
