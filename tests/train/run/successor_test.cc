#include "train/run/successor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/run/checkpoint_state.h"
#include "train/run/elastic.h"

namespace lockstep::train {
namespace {

/// A run of two ranks, of which the leader is gone.
class SuccessorTest : public testing::Test {
 protected:
  SuccessorTest() {
    put_file(directory_.config(), config::to_text(config_));
    rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
      if (group.rank() == 0) {
        Successor::announce(group, directory_, *lock_, kCPU);
      } else {
        successor_.emplace(config_, group);
      }
    }));
  }
  /// Leaves the lock as the system does where its holder was killed.
  void kill_leader() {
    lock_->leave_no_trace();
    lock_.reset();
  }
  /// What refuses the lead to the other rank, where `recorded` steps are in metrics.jsonl and the
  /// ranks have done `most`.
  std::string refusal(int64_t recorded, int64_t most) {
    put_file(directory_.metrics(), fmt::format("{{\"step\":{},\"loss\":2.5}}\n", recorded));
    return successor_->take_lead(most);
  }

  TemporaryDirectory folder_;
  config::RunConfig config_ = tiny_run(folder_);
  RunDirectory directory_ =
      RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse);
  std::unique_ptr<RunLock> lock_ = std::make_unique<RunLock>(directory_);
  std::optional<Successor> successor_;
};

TEST_F(SuccessorTest, LeadsWhereTheLeaderRecordedNoMoreThanOneStepThatTheRanksHaveNotDone) {
  kill_leader();
  EXPECT_EQ(refusal(7, 5), "step 7 was recorded, and these ranks have done 5");
  for (const int64_t recorded : {4, 5, 6}) EXPECT_EQ(refusal(recorded, 5), "") << recorded;
  const std::unique_ptr<RunLock> lock = successor_->release_lock();
  ASSERT_NE(lock, nullptr);
  EXPECT_EQ(RunLock::holder(directory_), lock->owner());
}

TEST_F(SuccessorTest, LeavesTheRunOfALeaderThatEndedByItself) {
  lock_.reset();
  EXPECT_EQ(refusal(5, 5),
            "rank 0 still holds the run's lock, has ended by itself, or has a successor");
  EXPECT_EQ(successor_->release_lock(), nullptr);
}

TEST_F(SuccessorTest, LeadsForALeaderThatIsLostBeforeItHasToldOfItselfAgain) {
  put_file(directory_.metrics(), "{\"step\":5,\"loss\":2.5}\n");
  CarriedRun carried;
  EXPECT_EQ(take_lead(carried, 5), "the rank that was to lead is lost as well");
  carried.successor = std::make_shared<Successor>(*std::move(successor_));
  kill_leader();
  EXPECT_EQ(take_lead(carried, 5), "");
  EXPECT_EQ(take_lead(carried, 5), "") << "once more, as others are lost meanwhile";
  carried.lock = carried.successor->release_lock();
  ASSERT_NE(carried.lock, nullptr);
  EXPECT_EQ(RunLock::holder(directory_), carried.lock->owner());
  EXPECT_EQ(take_lead(carried, 5), "") << "it leads already";
}

/// A trainer that has done so many steps, all of them recorded by the leader.
Trainer trained(const config::RunConfig& config, const RunDirectory& directory, int64_t steps) {
  Trainer trainer = Trainer::create(config);
  while (trainer.steps_done() < steps) trainer.step();
  put_file(directory.metrics(), fmt::format("{{\"step\":{},\"loss\":2.5}}\n", steps));
  return trainer;
}

TEST_F(SuccessorTest, KeepsTheStateOfALeaderThatIsGone) {
  Trainer trainer = trained(config_, directory_, 2);
  kill_leader();
  successor_->keep_steps_done(trainer, std::nullopt);
  const std::optional<CheckpointEntry> newest = newest_whole(directory_.checkpoints());
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->step, 2);
  EXPECT_TRUE(verify_checkpoint(newest->path).after_error);
}

TEST_F(SuccessorTest, KeepsTheStateAfterItHasTakenTheLead) {
  Trainer trainer = trained(config_, directory_, 2);
  kill_leader();
  ASSERT_EQ(successor_->take_lead(2), "");
  successor_->keep_steps_done(trainer, std::nullopt);
  EXPECT_TRUE(newest_whole(directory_.checkpoints()));
}

TEST_F(SuccessorTest, KeepsNothingWhileTheLeaderLives) {
  Trainer trainer = trained(config_, directory_, 2);
  successor_->keep_steps_done(trainer, std::nullopt);
  EXPECT_FALSE(newest_whole(directory_.checkpoints()));
}

TEST_F(SuccessorTest, KeepsTheConfigOfARunThatEndsEarly) {
  Trainer trainer = trained(config_, directory_, 2);
  trainer.end_early({9, 3});
  kill_leader();
  successor_->keep_steps_done(trainer, std::nullopt);
  const std::optional<CheckpointEntry> newest = newest_whole(directory_.checkpoints());
  ASSERT_TRUE(newest);
  EXPECT_EQ(verify_checkpoint(newest->path).early_end, (ScheduleEnd{9, 3}));
  EXPECT_TRUE(says(file_content(newest->path / "config.txtpb"), "decay_steps: 9"));
}

}  // namespace
}  // namespace lockstep::train
