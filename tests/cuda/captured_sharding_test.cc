// compile.cuda_graphs where a parallel.strategy spreads the model over ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cuda/gpu.h"
#include "tests/cuda/mirrored_rank.h"
#include "tests/emulation/queued_work.h"

namespace lockstep::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// What this rank keeps of parameters and of the optimizer's state.
std::string parts_of(Trainer& trainer) {
  std::string bytes;
  const auto add = [&](const Tensor& tensor) {
    const Tensor here = tensor.to(kCPU).contiguous();
    bytes.append(static_cast<const char*>(here.data()), here.nbytes());
  };
  for (const dist::ShardRun& run : trainer.own_runs()) add(run.values);
  for (const nn::StoredParameter& each : trainer.optimizer().state()) add(each.tensor);
  return bytes;
}

/// Results of eight steps, with evaluations of which the first comes before the capture.
std::string story_of_parts(Trainer& trainer, std::vector<int64_t>* replayed = nullptr) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    const bool evaluates = i == 2 || i == 5 || i == 6;
    const StepResult step = trainer.step(/*another=*/!evaluates && i < 7);
    text += all_of(step);
    if (step.replayed && replayed != nullptr) replayed->push_back(step.step);
    if (evaluates) text += fmt::format("evaluated {}\n", trainer.evaluate(2)->loss);
  }
  return text + parts_of(trainer);
}

void expect_no_change_of_parts(const std::string& change) {
  SCOPED_TRACE(change);
  const TemporaryDirectory folder;
  MirroredGroup plain_group, group;
  Trainer plain = trainer_of_two(folder, change, plain_group);
  Trainer graphs = trainer_of_two(folder, change + kGraphs, group);
  std::vector<int64_t> replayed;
  const std::string got = story_of_parts(graphs, &replayed);
  EXPECT_TRUE(got == story_of_parts(plain));
  EXPECT_THAT(replayed, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(graphs.compile_reasons(), Not(Contains(HasSubstr("CUDA graph"))));
}

TEST(CapturedSharding, ChangesNoBitWhateverIsSpread) {
  for (const char* const strategy : {"SHARD_OPTIMIZER", "SHARD_GRAD_OP", "FULL_SHARD"}) {
    expect_no_change_of_parts(fmt::format("parallel {{ strategy: {} }} ", strategy));
  }
}

TEST(CapturedSharding, ChangesNoBitInMixedPrecision) {
  for (const char* const strategy : {"SHARD_OPTIMIZER", "FULL_SHARD"}) {
    expect_no_change_of_parts(
        fmt::format("precision: BF16_MIXED parallel {{ strategy: {} }} ", strategy));
  }
}

TEST(CapturedSharding, ChangesNoBitOfSeveralMicroBatches) {
  for (const char* const reproducibility : {"ORDINARY", "BITWISE"}) {
    expect_no_change_of_parts(
        fmt::format("reproducibility: {} parallel {{ strategy: FULL_SHARD }} "
                    "train {{ micro_batch_size: 1 leaves: 4 }} ",
                    reproducibility));
  }
}

TEST(CapturedSharding, IsGivenUpWithoutATrace) {
  const TemporaryDirectory folder;
  for (const char* const strategy : {"SHARD_OPTIMIZER", "FULL_SHARD"}) {
    const std::string change = fmt::format("parallel {{ strategy: {} }} ", strategy);
    MirroredGroup plain_group, group;
    group.goes_through_the_cpu = true;
    Trainer plain = trainer_of_two(folder, change, plain_group);
    Trainer trainer = trainer_of_two(folder, change + kGraphs, group);
    std::vector<int64_t> replayed;
    EXPECT_TRUE(story_of_parts(trainer, &replayed) == story_of_parts(plain));
    EXPECT_THAT(replayed, IsEmpty());
    EXPECT_THAT(trainer.compile_reasons(), Contains(HasSubstr("the sum is made on the cpu")));
  }
}

TEST(CapturedSharding, IsTwoLaunchesAndCopies) {
  if (!is_emulated()) GTEST_SKIP() << "a real GPU counts nothing";
  const TemporaryDirectory folder;
  MirroredGroup group;
  Trainer trainer =
      trainer_of_two(folder, std::string("parallel { strategy: FULL_SHARD } ") + kGraphs, group);
  for (int i = 0; i < 5; ++i) trainer.step();
  emulation::QueuedWork work;
  EXPECT_TRUE(trainer.step().replayed);
  EXPECT_EQ(work.take().at("graph"), 2) << "passes and update";
}

TEST(CapturedSharding, NamesWhatIsUpdatedOnTheHost) {
  const TemporaryDirectory folder;
  MirroredGroup group;
  Trainer trainer = trainer_of_two(
      folder, std::string("parallel { strategy: FULL_SHARD cpu_offload: true } ") + kGraphs, group);
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(trainer.step().replayed);
  EXPECT_THAT(trainer.compile_reasons(), Contains(HasSubstr("parallel.cpu_offload")));
}

}  // namespace
}  // namespace lockstep::train
