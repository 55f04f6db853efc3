// An evaluation shared by ranks gives the same bits as on one rank.

#include "train/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor/stream.h"
#include "dist/group/thread_group.h"
#include "tests/train/rank_runs.h"
#include "tests/train/table_run.h"
#include "train/build.h"
#include "train/run/replicas.h"
#include "train/run/training_run.h"
#include "train/step_share.h"
#include "train/weights.h"

namespace lockstep::train {
namespace {

void on_ranks(int size, const std::function<void(dist::ProcessGroup&)>& body) {
  rethrow_first(dist::run_thread_ranks(size, body));
}

/// Losses whose sum depends on the order of additions.
double loss_of(int64_t batch) { return batch % 3 == 0 ? 1e16 : batch % 3 == 1 ? 1.0 : -1e16; }

TEST(SumOfBatches, AddsEachBatchOnceInOrderOnAnyNumberOfRanks) {
  for (const int64_t batches : {0, 1, 2, 3, 7, 24}) {
    for (const int64_t most : {0, 1, 5}) {
      const int64_t used = most > 0 ? std::min(most, batches) : batches;
      BatchScore expected;
      std::vector<int> once(static_cast<size_t>(batches));
      for (int64_t i = 0; i < used; ++i) {
        const int64_t batch = i * batches / used;
        expected.loss += loss_of(batch);
        expected.targets += batch;
        expected.correct += batch * batch;
        once[static_cast<size_t>(batch)] = 1;
      }
      for (const int size : {1, 2, 3, 4}) {
        std::vector<std::atomic<int>> scored(static_cast<size_t>(batches));
        on_ranks(size, [&](dist::ProcessGroup& group) {
          const auto sum = sum_of_batches(batches, {.max_batches = most, .group = &group},
                                          [&](int64_t batch) -> BatchScore {
                                            ++scored.at(static_cast<size_t>(batch));
                                            return {loss_of(batch), batch, batch * batch};
                                          });
          EXPECT_EQ(sum->loss, expected.loss);
          EXPECT_EQ(sum->targets, expected.targets);
          EXPECT_EQ(sum->correct, expected.correct);
        });
        EXPECT_TRUE(std::ranges::equal(once, scored, {}, {},
                                       [](const std::atomic<int>& n) { return n.load(); }))
            << batches << " batches, " << size << " ranks";
      }
    }
  }
}

TEST(SumOfBatches, OneRanksStopEndsItOnAllAfterTheSameBatches) {
  std::atomic<int> scored = 0;
  on_ranks(3, [&](dist::ProcessGroup& group) {
    int asked = 0;
    const auto stop = [&] { return ++asked == 3 && group.rank() == 1; };
    const auto sum = sum_of_batches(100, {.stop = stop, .group = &group}, [&](int64_t) {
      ++scored;
      return BatchScore();
    });
    EXPECT_FALSE(sum.has_value());
    EXPECT_EQ(asked, 3);
  });
  EXPECT_EQ(scored, 3 * 3 - 1);
}

/// A classifier with batch norm; its running statistics differ between ranks during training.
std::string resnet_in_training(const TemporaryDirectory& folder, const std::string& train = "") {
  return tiny_resnet(folder, "1, 1") +
         fmt::format("train {{ batch_size: 24 micro_batch_size: 6 {} }}", train);
}

TEST(Evaluation, HasTheSameBitsOnAnyNumberOfRanks) {
  const TemporaryDirectory folder;
  for (const std::string& more :
       {std::string("train { batch_size: 24 }"),
        std::string("train { batch_size: 24 micro_batch_size: 3 leaves: 8 }"),
        std::string("train { batch_size: 24 micro_batch_size: 6 } device: \"host:0\""),
        std::string("train { batch_size: 24 } precision: BF16_MIXED"),
        resnet_in_training(folder)}) {
    const config::RunConfig config = tiny_run(folder, more);
    for (const int64_t max_batches : {0, 3}) {
      Trainer alone = Trainer::create(config);
      const Evaluation one = *alone.evaluate(max_batches);
      EXPECT_GT(one.targets, 0);
      for (const int size : {2, 3, 4}) {
        on_ranks(size, [&](dist::ProcessGroup& group) {
          const StreamGuard own_stream(get_stream_from_pool(parse_device(config.device())));
          Trainer trainer = Trainer::create(
              config, build_task(config, share_of_step(config.train(), &group)), &group);
          const Evaluation many = *trainer.evaluate(max_batches);
          EXPECT_EQ(many.loss, one.loss) << more << ", " << size << " ranks";
          EXPECT_EQ(many.targets, one.targets) << more << ", " << size << " ranks";
          if (is_classifier(config)) {
            EXPECT_EQ(many.accuracy, one.accuracy) << size << " ranks";
          }
        });
      }
    }
  }
}

TEST(Evaluation, OfARunOverRanksIsThatOfTheWeightsItLeaves) {
  const TemporaryDirectory folder;
  for (const std::string& more : {std::string("train { batch_size: 24 steps: 3 eval_every: 2 }"),
                                  resnet_in_training(folder, "steps: 3 eval_every: 2")}) {
    const config::RunConfig config = tiny_run(folder, more);
    const TemporaryDirectory runs;
    Evaluation held_out;
    on_ranks(3, [&](dist::ProcessGroup& group) {
      if (group.rank() != 0) {
        follow_training(config, group, {});
        return;
      }
      TrainingRun run(config,
                      RunDirectory::create_at(runs / "run", RunDirectory::Existing::kContinue),
                      "{}", nullptr, &group);
      std::FILE* const nowhere = std::fopen("/dev/null", "w");
      held_out = run.run({.terminal = nowhere}).held_out;
      std::fclose(nowhere);
    });
    Trainer alone = Trainer::create(config);
    load_weights(alone.task().model(), runs / "run" / "model.safetensors");
    const Evaluation again = *alone.evaluate(0);
    EXPECT_EQ(held_out.loss, again.loss) << more;
    EXPECT_EQ(held_out.targets, again.targets) << more;
  }
}

}  // namespace
}  // namespace lockstep::train
