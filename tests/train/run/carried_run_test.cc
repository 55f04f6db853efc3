// Trainers that go on, in the same process, with fewer ranks.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dist/group/thread_group.h"
#include "tests/train/rank_runs.h"
#include "train/run/elastic.h"
#include "train/run/replicas.h"

namespace lockstep::train {
namespace {

using Groups = std::vector<std::unique_ptr<dist::ProcessGroup>>;

/// Calls `body` on `size` ranks, each on its own thread; returns the state of each at its end.
template <class Body>
std::vector<std::string> states_on_threads(int size, const Body& body) {
  std::vector<std::string> states(static_cast<size_t>(size));
  std::vector<std::exception_ptr> errors(states.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < states.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        states[rank] = body(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_first(errors);
  return states;
}

Trainer trainer_of(const config::RunConfig& config, dist::ProcessGroup& group) {
  return Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
}

std::string state_alone(const config::RunConfig& config, int steps) {
  Trainer trainer = Trainer::create(config);
  for (int i = 0; i < steps; ++i) (void)trainer.step();
  return state_bytes(trainer);
}

TEST(CarriedRun, TrainsTheSameBitsWithFewerRanks) {
  for (const char* more : kBitwiseRuns) {
    const TemporaryDirectory folder;
    const config::RunConfig config = layered_run(
        folder, std::string("train { leaves: 8 } ") + more + " reproducibility: BITWISE");
    Groups three = dist::thread_group(3), two = dist::thread_group(2);
    const auto states = states_on_threads(3, [&](size_t rank) -> std::string {
      auto before = std::make_unique<Trainer>(trainer_of(config, *three[rank]));
      for (int i = 0; i < 3; ++i) (void)before->step();
      if (rank == 2) return "";
      Trainer::Legacy legacy = before->leave();
      before.reset();
      // The numbers change: rank 1 leads.
      dist::ProcessGroup& group = *two[1 - rank];
      Trainer after = Trainer::create(config, legacy, &group);
      EXPECT_EQ(after.steps_done(), 3);
      for (int i = 0; i < 3; ++i) (void)after.step();
      return state_bytes(after);
    });
    const std::string alone = state_alone(config, 6);
    EXPECT_TRUE(states[0] == alone) << more;
    EXPECT_TRUE(states[1] == alone) << more;
  }
}

TEST(CarriedRun, TrainsTheSameBitsAlone) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, "train { micro_batch_size: 1 } reproducibility: BITWISE");
  Groups two = dist::thread_group(2);
  const auto states = states_on_threads(2, [&](size_t rank) -> std::string {
    auto before = std::make_unique<Trainer>(trainer_of(config, *two[rank]));
    for (int i = 0; i < 3; ++i) (void)before->step();
    if (rank == 0) return "";
    Trainer::Legacy legacy = before->leave();
    before.reset();
    Trainer after = Trainer::create(config, legacy, nullptr);
    for (int i = 0; i < 3; ++i) (void)after.step();
    return state_bytes(after);
  });
  EXPECT_TRUE(states[1] == state_alone(config, 6));
}

TEST(CarriedRun, KeepsTheSizeOfMicroBatchesWhereRanksHaveNoWholeLeaves) {
  // Each of two ranks does half of the one leaf at once.
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "train { leaves: 1 }");
  Groups two = dist::thread_group(2);
  const auto states = states_on_threads(2, [&](size_t rank) -> std::string {
    auto before = std::make_unique<Trainer>(trainer_of(config, *two[rank]));
    (void)before->step();
    EXPECT_EQ(before->share().micro_batch_size, 4);
    if (rank == 1) return "";
    Trainer::Legacy legacy = before->leave();
    before.reset();
    Trainer after = Trainer::create(config, legacy, nullptr);
    EXPECT_EQ(after.share().micro_batch_size, 4);
    EXPECT_EQ(after.share().micro_batches, 2);
    EXPECT_TRUE(after.step().outcome.updated());
    return state_bytes(after);
  });
  EXPECT_FALSE(states[0].empty());
}

TEST(CarriedRun, ARankThatIsAStepBehindTakesStateAndStepOfTheOther) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, "train { micro_batch_size: 1 } reproducibility: BITWISE");
  Groups groups = dist::thread_group(2);
  std::vector<CarriedRun> carried(2);
  const auto states = states_on_threads(2, [&](size_t rank) {
    Trainer trainer = trainer_of(config, *groups[rank]);
    for (int i = 0; i < 3; ++i) (void)trainer.step();
    carried[rank].last = trainer.step();
    carried[rank].source = 1;
    carried[rank].steps = trainer.steps_done();
    if (rank == 0) {
      // As if it had not come to its update.
      carried[rank].last->step = 2;
      carried[rank].steps = 3;
      trainer.set_position({3, 3});
      for (const Tensor& each : trainer.task().model().parameters()) each.detach().fill_(0.5);
    }
    Replicas replicas(groups[rank].get());
    replicas.share_carried(trainer, carried[rank]);
    EXPECT_FALSE(replicas.replaces_state());
    EXPECT_EQ(trainer.steps_done(), 4);
    (void)trainer.step();
    return state_bytes(trainer);
  });
  EXPECT_EQ(carried[0].last->step, 3);
  EXPECT_EQ(carried[0].last->loss, carried[1].last->loss);
  const std::string alone = state_alone(config, 5);
  EXPECT_TRUE(states[0] == alone);
  EXPECT_TRUE(states[1] == alone);
}

}  // namespace
}  // namespace lockstep::train
