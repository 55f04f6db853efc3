// Trainers of groups of ranks that keep a model together, which go on with other groups.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dist/group/failure.h"
#include "tests/train/group_runs.h"
#include "train/run/elastic.h"
#include "train/run/replicas.h"

namespace lockstep::train {
namespace {

TEST(CarriedGroups, OneGroupTrainsTheSameBitsWithoutTheOther) {
  for (const char* more : hybrid_runs()) {
    const TemporaryDirectory folder;
    const config::RunConfig config =
        layered_run(folder, std::string("train { leaves: 8 } ") + more + kHybrid);
    RankGroups four = dist::thread_group(4), two = dist::thread_group(2);
    std::string state;
    on_rank_threads(4, [&](size_t rank) {
      auto before = rank_trainer(config, *four[rank]);
      for (int i = 0; i < 3; ++i) (void)before->step();
      Trainer::Legacy legacy = before->leave();
      before.reset();
      if (rank < 2) return;
      EXPECT_EQ(legacy.part, static_cast<int>(rank) % 2);
      Trainer after = Trainer::create(config, legacy, two[rank - 2].get());
      EXPECT_EQ(after.steps_done(), 3);
      for (int i = 0; i < 3; ++i) (void)after.step();
      const std::string collected = collected_state(after);
      if (rank == 2) state = collected;
    });
    EXPECT_TRUE(state == state_of_one_rank(config, 6)) << more;
  }
}

TEST(CarriedGroups, RanksThatJoinTakeTheirPartsAndChangeNoBit) {
  for (const char* more : hybrid_runs()) {
    const TemporaryDirectory folder;
    const config::RunConfig config =
        layered_run(folder, std::string("train { leaves: 8 } ") + more + kHybrid);
    RankGroups two = dist::thread_group(2), four = dist::thread_group(4);
    std::string state, of_other_group;
    on_rank_threads(4, [&](size_t rank) {
      CarriedRun carried;
      carried.source = 0;
      carried.part_sources = {-1, -1, 0, 1};
      carried.steps = rank < 2 ? 3 : -1;
      Trainer::Legacy legacy;
      if (rank < 2) {
        auto before = rank_trainer(config, *two[rank]);
        for (int i = 0; i < 3; ++i) carried.last = before->step();
        legacy = before->leave();
      } else {
        legacy = legacy_without_state(config);
      }
      Trainer after = Trainer::create(config, legacy, four[rank].get());
      Replicas replicas(four[rank].get());
      replicas.share_carried(after, carried);
      EXPECT_FALSE(replicas.replaces_state());
      EXPECT_EQ(after.steps_done(), 3);
      ASSERT_TRUE(carried.last);
      EXPECT_EQ(carried.last->step, 2);
      for (int i = 0; i < 3; ++i) (void)after.step();
      const std::string collected = collected_state(after);
      if (rank == 0) state = collected;
      // The first group ends: what the second has are the same bits.
      legacy = after.leave();
      if (rank < 2) return;
      Trainer alone = Trainer::create(config, legacy, two[rank - 2].get());
      const std::string again = collected_state(alone);
      if (rank == 2) of_other_group = again;
    });
    EXPECT_TRUE(state == state_of_one_rank(config, 6)) << more;
    EXPECT_TRUE(of_other_group == state) << more;
  }
}

TEST(CarriedGroups, ARankThatHadAnotherPartTakesTheOneOfItsPlace) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, std::string("train { micro_batch_size: 1 leaves: 8 }") + kHybrid);
  RankGroups four = dist::thread_group(4), again = dist::thread_group(4);
  std::string state;
  on_rank_threads(4, [&](size_t rank) {
    auto before = rank_trainer(config, *four[rank]);
    for (int i = 0; i < 2; ++i) (void)before->step();
    Trainer::Legacy legacy = before->leave();
    before.reset();
    // Ranks 2 and 3 change their places.
    const size_t number = rank < 2 ? rank : 5 - rank;
    CarriedRun carried;
    carried.source = 0;
    carried.part_sources = {-1, -1, 0, 1};
    carried.steps = rank < 2 ? 2 : -1;
    Trainer after = Trainer::create(config, legacy, again[number].get());
    Replicas(again[number].get()).share_carried(after, carried);
    for (int i = 0; i < 2; ++i) (void)after.step();
    const std::string collected = collected_state(after);
    if (rank == 0) state = collected;
  });
  EXPECT_TRUE(state == state_of_one_rank(config, 4));
}

/// Calls `then` once a rank has the sums of a step over the ranks, before it updates.
class EndOfSums final : public StepWatch {
 public:
  explicit EndOfSums(std::function<void()> then) : then_(std::move(then)) {}
  void begin(const StepPart&) override {}
  void call(const Operator& op, KeySet keys, Stack& stack) override {
    pass_on(op, keys, stack);
    // The first of a step adds up the norm, the second the losses.
    if (op.schema().name == "_ordered_sum" && ++sums_ == 2) then_();
  }

 private:
  int sums_ = 0;
  std::function<void()> then_;
};

/// Makes 2 steps on four ranks, and one more in which rank 3 is lost when all others have what
/// their update needs. Calls `then` on these.
void lose_a_rank_before_the_update(const config::RunConfig& config,
                                   const std::function<void(size_t rank, Trainer& trainer)>& then) {
  RankGroups four = dist::thread_group(4);
  std::atomic<int> have_sums = 0;
  on_rank_threads(4, [&](size_t rank) {
    auto trainer = rank_trainer(config, *four[rank]);
    for (int i = 0; i < 2; ++i) (void)trainer->step();
    EXPECT_EQ(trainer->steps_if_finished(), -1);
    EndOfSums watch([&] {
      ++have_sums;
      if (rank < 3) return;
      while (have_sums < 4) std::this_thread::yield();
      four[rank]->abort("lost");
      throw DistError("lost");  // before it meets the others
    });
    trainer->set_watch(&watch);
    EXPECT_THROW((void)trainer->step(), DistError);
    trainer->set_watch(nullptr);
    if (rank < 3) then(rank, *trainer);
  });
}

TEST(CarriedGroups, AStepOfWhichRanksHaveEverythingIsFinishedWithoutTheOneThatIsLost) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, std::string("train { micro_batch_size: 1 leaves: 8 }") + kHybrid);
  RankGroups two = dist::thread_group(2);
  std::string state;
  lose_a_rank_before_the_update(config, [&](size_t rank, Trainer& trainer) {
    EXPECT_EQ(trainer.steps_done(), 2);
    EXPECT_EQ(trainer.steps_if_finished(), 3);
    EXPECT_TRUE(trainer.keeps_own_state());
    EXPECT_FALSE(trainer.keeps_steps_done());
    const StepResult step = trainer.finish_step();
    EXPECT_EQ(step.step, 2);
    EXPECT_GT(step.loss, 0);
    EXPECT_GT(step.seconds, 0);
    EXPECT_TRUE(step.outcome.updated());
    EXPECT_EQ(trainer.steps_done(), 3);
    EXPECT_EQ(trainer.steps_if_finished(), -1);
    Trainer::Legacy legacy = trainer.leave();
    if (rank == 2) return;
    Trainer after = Trainer::create(config, legacy, two[rank].get());
    for (int i = 0; i < 2; ++i) (void)after.step();
    const std::string collected = collected_state(after);
    if (rank == 0) state = collected;
  });
  EXPECT_TRUE(state == state_of_one_rank(config, 5));
}

TEST(CarriedGroups, AStepThatIsNotFinishedIsDoneAgain) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, std::string("train { micro_batch_size: 1 leaves: 8 }") + kHybrid);
  RankGroups two = dist::thread_group(2);
  std::string state;
  lose_a_rank_before_the_update(config, [&](size_t rank, Trainer& trainer) {
    EXPECT_TRUE(trainer.keeps_own_state());
    Trainer::Legacy legacy = trainer.leave();
    if (rank == 2) return;
    Trainer after = Trainer::create(config, legacy, two[rank].get());
    EXPECT_EQ(after.steps_done(), 2);
    for (int i = 0; i < 3; ++i) (void)after.step();
    const std::string collected = collected_state(after);
    if (rank == 0) state = collected;
  });
  EXPECT_TRUE(state == state_of_one_rank(config, 5));
}

}  // namespace
}  // namespace lockstep::train
