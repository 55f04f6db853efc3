#include "train/joining/part_giver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/tensor/generator.h"
#include "tests/core/base/comes_true.h"
#include "tests/core/expect_error.h"
#include "tests/train/group_runs.h"
#include "tests/train/table_run.h"
#include "train/joining/part_taker.h"

namespace lockstep::train {
namespace {

using namespace std::chrono_literals;
using PartStanding = StateGiver::Standing;

std::string bytes_of(const std::vector<Tensor>& tensors) {
  std::string bytes;
  for (const Tensor& each : tensors) {
    bytes.append(static_cast<const char*>(each.data()), each.nbytes());
  }
  return bytes;
}

/// Two ranks with a door each, that keep a model together, and processes that take their parts.
class GivenParts : public testing::Test {
 protected:
  /// A process that takes a part.
  struct Process {
    Process(const config::RunConfig& config, PartTaker::Options options)
        : legacy(legacy_without_state(config)) {
      taker.emplace(config, std::move(options), legacy);
    }

    Trainer::Legacy legacy;
    std::optional<PartTaker> taker;
  };

  GivenParts() {
    for (int part = 0; part < 2; ++part) {
      dist::OpenPort port(/*local=*/true);
      sources_.push_back({part,
                          "open sesame",
                          {dist::to_string(dist::endpoints_of(port.description(), true)[0])}});
      doors_.push_back(std::make_unique<dist::Door>(dist::DoorOptions{.secret = "open sesame"},
                                                    std::move(port)));
    }
  }
  PartTaker::Options options(size_t part) const {
    return {.shard_size = 2, .source = sources_[part], .limit = 20s};
  }
  std::unique_ptr<Process> process(const config::RunConfig& config, size_t part) const {
    return std::make_unique<Process>(config, options(part));
  }
  /// Trains on two ranks that give their parts until both are `wanted`, or one of them gives it to
  /// nobody any more; then calls `then` on each. Calls `between` between two steps.
  void give_until(const config::RunConfig& config, PartStanding wanted, int processes,
                  const std::function<void(size_t rank, Trainer& trainer, PartGiver& giver)>& then,
                  const std::function<void(size_t rank, Trainer& trainer)>& between = {}) const {
    RankGroups two = dist::thread_group(2);
    on_rank_threads(2, [&](size_t rank) {
      auto trainer = rank_trainer(config, *two[rank]);
      for (int i = 0; i < 2; ++i) (void)trainer->step();
      PartGiver giver(*trainer, *doors_[rank], live_part(*trainer).value(), processes, 20s);
      const Tensor so_many = full({1}, 0, DType::kI64);
      while (*so_many.data<int64_t>() < (wanted == PartStanding::kNobody ? 1 : 2)) {
        const StepResult step = trainer->step();
        if (between) between(rank, *trainer);
        so_many.fill_(giver.add(step) == wanted ? 1 : 0);
        two[rank]->all_reduce(so_many).wait();
      }
      then(rank, *trainer, giver);
    });
  }

  std::vector<PartSource> sources_;
  std::vector<std::unique_ptr<dist::Door>> doors_;
};

TEST_F(GivenParts, HaveTheBitsOfTheRanksThatTrainedMeanwhile) {
  std::vector<const char*> runs = hybrid_runs();
  for (const char* more :
       {"train { batch_size: 8 micro_batch_size: 1 } optimizer { lion {} }",
        "train { batch_size: 8 micro_batch_size: 1 } model { freeze: \"*attn*\" }",
        "train { batch_size: 8 micro_batch_size: 1 } precision: F16_MIXED",
        "train { batch_size: 8 micro_batch_size: 1 loss_spike { action: SKIP z: 0.1 window: 2 } "
        "}"}) {
    runs.push_back(more);
  }
  for (const char* more : runs) {
    const TemporaryDirectory folder;
    const config::RunConfig config =
        layered_run(folder, std::string("train { leaves: 8 } ") + more + kHybrid);
    const auto first = process(config, 0), second = process(config, 1);
    std::vector<Trainer::Legacy> legacies(2);
    give_until(config, PartStanding::kWhole, 1,
               [&](size_t rank, Trainer& trainer, PartGiver& giver) {
                 giver.call();
                 legacies[rank] = trainer.leave();
               });
    const int64_t steps = legacies[0].position.step;
    for (Process* const each : {first.get(), second.get()}) {
      ASSERT_EQ(each->taker->finish(20s), steps) << more;
      ASSERT_TRUE(each->taker->last());
      EXPECT_EQ(each->taker->last()->step, steps - 1);
      const Trainer::Legacy& rank = legacies[each == first.get() ? 0 : 1];
      EXPECT_EQ(each->legacy.part, rank.part);
      EXPECT_EQ(each->legacy.updates, rank.updates) << more;
      EXPECT_EQ(each->legacy.position, rank.position);
      EXPECT_EQ(each->legacy.spikes, rank.spikes) << more;
      EXPECT_TRUE(bytes_of(each->legacy.parts) == bytes_of(rank.parts)) << more;
      legacies.push_back(std::move(each->legacy));
    }
    // All of them train on.
    RankGroups four = dist::thread_group(4);
    std::string state;
    on_rank_threads(4, [&](size_t rank) {
      default_generator().manual_seed(config.seed());  // as where the task was built
      Trainer after = Trainer::create(config, legacies[rank], four[rank].get());
      for (int i = 0; i < 2; ++i) (void)after.step();
      const std::string collected = collected_state(after);
      if (rank == 0) state = collected;
    });
    EXPECT_TRUE(state == state_of_one_rank(config, steps + 2)) << more;
  }
}

TEST_F(GivenParts, HaveTheRunningStatisticsOfTheRanks) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, tiny_resnet(folder) + "train { micro_batch_size: 1 leaves: 8 }" + kHybrid);
  const auto first = process(config, 0), second = process(config, 1);
  std::vector<std::string> statistics(2);
  const auto buffers = [](const Task& task) {
    std::vector<Tensor> tensors;
    for (const auto& each : const_cast<Task&>(task).model().named_buffers()) {
      tensors.push_back(each.tensor);
    }
    return bytes_of(tensors);
  };
  give_until(config, PartStanding::kWhole, 1, [&](size_t rank, Trainer& trainer, PartGiver& giver) {
    giver.call();
    statistics[rank] = buffers(trainer.task());
  });
  EXPECT_GT(first->taker->finish(20s), 0);
  EXPECT_GT(second->taker->finish(20s), 0);
  EXPECT_TRUE(buffers(*first->legacy.task) == statistics[0]);
  EXPECT_TRUE(buffers(*second->legacy.task) == statistics[1]);
}

TEST_F(GivenParts, AreGivenToNobodyOnceAProcessIsLost) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, std::string("train { micro_batch_size: 1 leaves: 8 }") + kHybrid);
  const auto first = process(config, 0);
  auto second = process(config, 1), third = process(config, 1);
  const auto fourth = process(config, 0);
  bool is_lost = false;
  give_until(
      config, PartStanding::kNobody, 2,
      [&](size_t rank, Trainer&, PartGiver&) { doors_[rank]->close(dist::JoinEnd::kFailed); },
      [&](size_t rank, Trainer&) {
        if (rank == 0 || is_lost || doors_[1]->given().processes < 2) return;
        is_lost = true;
        second.reset();
        ASSERT_TRUE(comes_true([&] { return doors_[1]->given().processes == 1; }));
      });
}

TEST_F(GivenParts, AreTooSlowWhereAProcessDoesNotCome) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, std::string("train { micro_batch_size: 1 leaves: 8 }") + kHybrid);
  RankGroups two = dist::thread_group(2);
  on_rank_threads(2, [&](size_t rank) {
    auto trainer = rank_trainer(config, *two[rank]);
    PartGiver giver(*trainer, *doors_[rank], live_part(*trainer).value(), 1, 0s);
    EXPECT_EQ(giver.add(trainer->step()), PartStanding::kTooSlow);
  });
}

TEST_F(GivenParts, AreNotThoseOfARuleThatNeedsWholeTensors) {
  const TemporaryDirectory folder;
  RankGroups two = dist::thread_group(2);
  const config::RunConfig muon =
      layered_run(folder,
                  "train { micro_batch_size: 1 leaves: 8 } optimizer { muon {} } "
                  "parallel { strategy: HYBRID_SHARD shard_size: 2 } reproducibility: BITWISE");
  on_rank_threads(2,
                  [&](size_t rank) { EXPECT_FALSE(live_part(*rank_trainer(muon, *two[rank]))); });
  Trainer whole = Trainer::create(tiny_run(folder));
  EXPECT_FALSE(live_part(whole));
}

TEST_F(GivenParts, AProcessHasNoneWhereTheRankEndsOrRefusesIt) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, std::string("train { micro_batch_size: 1 leaves: 8 }") + kHybrid);
  const auto first = process(config, 0);
  ASSERT_TRUE(comes_true([&] { return doors_[0]->ready() == 1; }));
  doors_[0]->close(dist::JoinEnd::kFailed);
  EXPECT_EQ(first->taker->finish(20s), -1);
  EXPECT_EQ(first->legacy.part, -1);
  EXPECT_TRUE(first->legacy.task);
  PartTaker::Options other = options(1);
  other.source.secret = "open barley";
  Process stranger(config, other);
  EXPECT_EQ(stranger.taker->finish(20s), -1);
  EXPECT_TRUE(stranger.legacy.task);
  // One that is not called waits no longer than it is to.
  const auto second = process(config, 1);
  ASSERT_TRUE(comes_true([&] { return doors_[1]->ready() == 1; }));
  EXPECT_EQ(second->taker->finish(0s), -1);
  EXPECT_TRUE(second->legacy.task);
}

TEST(PartSourceText, IsReadAsItWasWritten) {
  const PartSource source =
      PartSource::of(PartSource{3, "sesame", {"10.0.0.1:40", "[fd00::2]:40"}}.text());
  EXPECT_EQ(source.part, 3);
  EXPECT_EQ(source.secret, "sesame");
  EXPECT_THAT(source.doors, testing::ElementsAre("10.0.0.1:40", "[fd00::2]:40"));
  for (const char* text : {"", "1", "1 sesame", "-1 sesame a:1", "x sesame 10.0.0.1:40"}) {
    expect_error<DataError>([&] { (void)PartSource::of(text); },
                            "where a part of the state is given");
  }
}

}  // namespace
}  // namespace lockstep::train
