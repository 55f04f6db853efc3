// Copies of the state in the memory of the ranks (checkpoint.memory_every).

#include "train/run/memory_copies.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "dist/group/thread_group.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "tests/train/tiny_run.h"
#include "train/build.h"
#include "train/run/checkpoint_state.h"
#include "train/run/memory_rescue.h"
#include "train/step_share.h"

namespace lockstep::train {
namespace {

constexpr const char* kExact =
    "train { steps: 8 micro_batch_size: 1 eval_every: 0 } reproducibility: BITWISE ";
// Memory of copies is used again from the third on.
constexpr const char* kCopied = "checkpoint { every_steps: 0 memory_every: 1 } ";
const std::vector<const char*> kStrategies = {
    "parallel { strategy: FULL_SHARD }", "parallel { strategy: SHARD_GRAD_OP }",
    "parallel { strategy: SHARD_OPTIMIZER }", "parallel { strategy: HYBRID_SHARD shard_size: 2 }"};

TEST(MemoryCopies, OfARankThatIsLostAreSavedAndGoneOnFromWithTheSameBits) {
  for (const char* strategy : kStrategies) {
    const TemporaryDirectory straight, torn;
    const std::string options = std::string(kExact) + kCopied + strategy;
    rethrow_first(run_on_ranks(layered_run(straight, options), straight, 4));
    int asked = 0;
    const auto errors = run_on_ranks(layered_run(torn, options), torn, 4, [&] {
      if (++asked == 8) throw DataError("lost");
      return false;
    });
    ASSERT_TRUE(errors[0] != nullptr) << strategy;
    expect_error<PeerLostError>([&] { std::rethrow_exception(errors[0]); },
                                "rank 3 failed: DataError: lost");
    const auto found = list_checkpoints(torn / "run/checkpoints");
    ASSERT_EQ(found.size(), 1U) << strategy;
    // Copies of step 7 may still have been on their way.
    EXPECT_TRUE(found[0].step == 7 || found[0].step == 6) << strategy << found[0].step;
    EXPECT_TRUE(found[0].complete && found[0].after_error) << strategy;
    EXPECT_EQ(found[0].ranks, 4) << strategy;
    (void)verify_checkpoint(found[0].path);
    EXPECT_TRUE(partial_checkpoints(torn / "run/checkpoints").empty()) << strategy;
    rethrow_first(run_on_ranks(layered_run(torn, options), torn, 2));
    EXPECT_TRUE(weights_of(torn) == weights_of(straight)) << strategy;
  }
}

TEST(MemoryCopies, ChangeNoBit) {
  for (const char* more : {"", "checkpoint { asynchronous: true } ", "precision: BF16_MIXED "}) {
    for (const char* strategy : {"parallel { strategy: FULL_SHARD }", ""}) {
      const TemporaryDirectory with, without;
      const std::string options = std::string(kExact) + more + strategy;
      rethrow_first(run_on_ranks(
          layered_run(with, options + " checkpoint { every_steps: 2 memory_every: 1 }"), with, 2));
      rethrow_first(run_on_ranks(layered_run(without, options), without, 2));
      EXPECT_TRUE(weights_of(with) == weights_of(without)) << more << strategy;
    }
  }
}

TEST(MemoryCopies, AreNotSavedWhereACheckpointIsAsNew) {
  const TemporaryDirectory folder;
  const std::string options =
      std::string(kExact) + "checkpoint { every_steps: 7 memory_every: 3 } " + kStrategies[0];
  int asked = 0;
  const auto errors = run_on_ranks(layered_run(folder, options), folder, 2, [&] {
    if (++asked == 8) throw DataError("lost");
    return false;
  });
  EXPECT_TRUE(errors[0] != nullptr);
  const auto found = list_checkpoints(folder / "run/checkpoints");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].step, 7);
}

/// Ranks that train 4 steps, copy their state after the third, and do `then` when all are done.
class MemoryRescueTest : public testing::Test {
 protected:
  template <class Then>
  void train(int ranks, const Then& then) {
    const config::RunConfig config =
        layered_run(folder_,
                    "train { steps: 8 micro_batch_size: 1 } checkpoint { memory_every: 1 } "
                    "parallel { strategy: FULL_SHARD }");
    const RunDirectory directory =
        RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kContinue);
    put_file(directory.metrics(), "{\"step\":4}\n");
    rethrow_first(dist::run_thread_ranks(ranks, [&](dist::ProcessGroup& group) {
      Trainer trainer = Trainer::create(
          config, build_task(config, share_of_step(config.train(), &group)), &group);
      for (int i = 0; i < 3; ++i) trainer.step();
      MemoryCopies copies(config, trainer, &group);
      copies.begin({}, /*at_once=*/false);
      trainer.step();
      (void)copies.newest();
      MemoryRescue rescue{directory, "start", group.rank(), group.size()};
      rescue.to_claim = std::chrono::milliseconds(50);
      rescue.to_be_claimed = to_be_claimed_;
      then(group.rank(), rescue, copies);
      group.barrier().wait();
    }));
  }
  static std::optional<int64_t> lead(const MemoryRescue& rescue, MemoryCopies& copies) {
    return rescue.lead(copies, {}, [](CheckpointManifest&) {});
  }
  static void follow(const MemoryRescue& rescue, MemoryCopies& copies) {
    while (!rescue.follow(copies)) std::this_thread::yield();
  }
  std::vector<CheckpointEntry> saved() const {
    return list_checkpoints(folder_ / "run/checkpoints");
  }

  TemporaryDirectory folder_;
  std::chrono::milliseconds to_be_claimed_ = std::chrono::seconds(20);
};

TEST_F(MemoryRescueTest, WritesThePartOfALostRankOnce) {
  for (int lost = 0; lost < 4; ++lost) {
    train(4, [&](int rank, const MemoryRescue& rescue, MemoryCopies& copies) {
      if (rank == lost) return;
      // The lowest that is left leads.
      if (rank == (lost == 0 ? 1 : 0)) {
        EXPECT_EQ(lead(rescue, copies), 3);
      } else {
        follow(rescue, copies);
      }
    });
    ASSERT_EQ(saved().size(), 1U) << lost;
    EXPECT_EQ(saved()[0].step, 3);
    EXPECT_EQ(verify_checkpoint(saved()[0].path).position.step, 3);
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(MemoryRescueTest, WithoutAPartAndItsCopySavesNothing) {
  to_be_claimed_ = std::chrono::milliseconds(300);
  train(4, [&](int rank, const MemoryRescue& rescue, MemoryCopies& copies) {
    if (rank == 0) {
      expect_error<CheckpointError>([&] { lead(rescue, copies); },
                                    "step 3 was in memory, but the part of rank 1 is lost");
    } else if (rank == 3) {
      follow(rescue, copies);
    }
  });
  EXPECT_TRUE(saved().empty());
  EXPECT_TRUE(partial_checkpoints(folder_ / "run/checkpoints").empty());
}

TEST_F(MemoryRescueTest, HasNothingOfAStateThatWasReplaced) {
  train(2, [&](int rank, const MemoryRescue& rescue, MemoryCopies& copies) {
    copies.forget();
    if (rank == 0) {
      EXPECT_EQ(lead(rescue, copies), std::nullopt);
    }
    EXPECT_EQ(copies.of(3), nullptr);
  });
  EXPECT_TRUE(saved().empty());
}

}  // namespace
}  // namespace lockstep::train
