#include "train/bisect/bisect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/train/bisect/recorded_runs.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

class Bisect : public testing::Test {
 protected:
  RecordedRun record(const std::string& name, const std::string& more = "") const {
    return recorded(folder_, name, six_steps(folder_, more));
  }
  Bisection compare(const RecordedRun& a, const RecordedRun& b, bool replay_equal = false) const {
    return bisect(a, b, {.replay_equal = replay_equal});
  }

  TemporaryDirectory folder_;
};

TEST_F(Bisect, EqualRunsHaveNoDifference) {
  const RecordedRun a = record("a"), b = record("b");
  EXPECT_TRUE(compare(a, b).same());
  const Bisection replayed = compare(a, b, true);
  EXPECT_TRUE(replayed.same()) << describe(replayed, a, b);
  EXPECT_EQ(replayed.replayed, 6);
  EXPECT_EQ(replayed.from_step, 0);
}

TEST_F(Bisect, NamesOperatorModuleElementAndBothValues) {
  const RecordedRun a = record("a");
  const RecordedRun b =
      record("b", flipped("step=4,micro_batch=1,operator=stream_norm,call=1,element=17,bit=0"));
  const Bisection result = compare(a, b);
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.from_step, 2);
  EXPECT_EQ(result.found->part, (StepPart{3, 1}));
  EXPECT_EQ(result.found->operator_name, "stream_norm");
  EXPECT_EQ(result.found->phase, "forward");
  EXPECT_EQ(result.found->call, 1);
  EXPECT_TRUE(result.found->inputs.empty());
  ASSERT_TRUE(result.found->element);
  EXPECT_EQ(result.found->element->element, 17);
  EXPECT_EQ(result.found->element->differing, 1);
  EXPECT_NE(result.found->element->a, result.found->element->b);
  EXPECT_TRUE(result.unrepeated.empty());
  EXPECT_TRUE(says(describe(result, a, b), "first operator that differs: stream_norm"));
}

TEST_F(Bisect, AFaultOfBackwardBelongsToTheModuleOfItsForwardPass) {
  const RecordedRun a = record("a");
  const RecordedRun b =
      record("b", flipped("step=2,operator=linear_of_gelu_backward.out,call=1,element=3,bit=4"));
  const Bisection result = compare(a, b);
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.found->phase, "backward");
  EXPECT_TRUE(says(result.found->module, "h.1.mlp"));
}

TEST_F(Bisect, AFaultInTheUpdateIsFoundInItsOwnStep) {
  const RecordedRun a = record("a");
  const RecordedRun b = record("b", flipped("step=3,micro_batch=update,operator=_fused_adamw_,"
                                            "call=1,result=2,element=3,bit=10"));
  const Bisection result = compare(a, b);
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.found->part, (StepPart{2, std::nullopt}));
  EXPECT_EQ(result.found->operator_name, "_fused_adamw_");
}

TEST_F(Bisect, RunsOfTwoDevicesAreComparedOnBoth) {
  const RecordedRun a = record("a");
  const RecordedRun b =
      record("b", "device: \"host:0\" " +
                      flipped("step=5,micro_batch=2,operator=mm,call=3,element=5,bit=12"));
  const Bisection result = compare(a, b);
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.found->operator_name, "mm");
  EXPECT_EQ(result.found->call, 3);
  EXPECT_TRUE(result.found->inputs.empty());
  EXPECT_EQ(result.from_step, 4);
}

TEST_F(Bisect, ARunOfManyRanksIsReplayedByOne) {
  const RecordedRun a = recorded(folder_, "a", bitwise_steps(folder_));
  const std::string fault = flipped("step=3,micro_batch=3,operator=addmm,call=2,element=9,bit=3");
  rethrow_first(run_on_ranks(bitwise_steps(folder_, "parallel { strategy: FULL_SHARD } " + fault),
                             folder_, 3));
  const RecordedRun b = read_run(folder_ / "run");
  EXPECT_EQ(b.ranks, 3);
  const Bisection result = compare(a, b);
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.found->part, (StepPart{2, 3}));
  EXPECT_EQ(result.found->leaf, 3);
  EXPECT_EQ(result.found->operator_name, "addmm");
  EXPECT_TRUE(result.unrepeated.empty()) << describe(result, a, b);
}

TEST_F(Bisect, AFaultThatDoesNotRepeatIsTheMachines) {
  const RecordedRun a = record("a");
  RecordedRun b = record("b");
  ASSERT_EQ(b.steps[4].step, 5);
  const double loss = *b.steps[4].loss;
  for (const double recorded :
       {std::nextafter(loss, 1e9), std::numeric_limits<double>::quiet_NaN()}) {
    b.steps[4].loss = recorded;
    const Bisection result = compare(a, b);
    EXPECT_FALSE(result.found);
    EXPECT_FALSE(result.same());
    ASSERT_EQ(result.unrepeated.size(), 1u) << recorded;
    EXPECT_EQ(result.unrepeated[0].run, b.name);
    EXPECT_EQ(result.unrepeated[0].step, 5);
    EXPECT_TRUE(says(describe(result, a, b), "a fault of a machine"));
  }
}

TEST_F(Bisect, RunsWithoutCheckpointsAreReplayedFromTheBeginning) {
  const RecordedRun a = record("a");
  const RecordedRun b = record("b", flipped("step=3,operator=addmm,call=2,element=9,bit=3"));
  std::filesystem::remove_all(b.directory.checkpoints());
  const Bisection result = compare(a, b);
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.from_step, 0);
  EXPECT_EQ(result.found->operator_name, "addmm");
}

TEST_F(Bisect, RecomputationInOneOfTheRunsChangesNothing) {
  const RecordedRun a = record("a");
  const RecordedRun b = record(
      "b", "model { recompute: BLOCK } " + flipped("step=5,operator=addmm,call=2,element=9,bit=3"));
  const Bisection result = compare(a, b);
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.found->operator_name, "addmm");
}

TEST_F(Bisect, AnotherLearningRateDiffersFirstInTheUpdate) {
  const RecordedRun a = record("a");
  const RecordedRun b = record("b", "optimizer { learning_rate: 2e-3 }");
  const Bisection result = compare(a, b);
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.found->operator_name, "_fused_adamw_");
  EXPECT_EQ(result.found->inputs, std::vector<std::string>{"lr"});
  EXPECT_TRUE(says(describe(result, a, b), "optimizer.learning_rate"));
}

TEST_F(Bisect, RefusesRunsWithoutACommonAncestor) {
  const RecordedRun a = record("a"), b = record("b", "seed: 7");
  EXPECT_TRUE(says(message_of<ConfigError>([&] { (void)compare(a, b); }),
                   "no common ancestor: expected runs of one model, data and seed in the same "
                   "micro-batches, got seed 1337 -> 7"));
}

TEST_F(Bisect, RefusesRunsWithoutACommonStep) {
  const RecordedRun a = record("a");
  RecordedRun b = record("b");
  b.steps.clear();
  EXPECT_TRUE(says(message_of<DataError>([&] { (void)compare(a, b); }), "have no step in common"));
}

TEST_F(Bisect, RefusesOtherData) {
  const RecordedRun a = record("a");
  const RecordedRun b = record("b", flipped("step=3,operator=addmm,call=2,element=9,bit=3"));
  std::string text = file_content(folder_ / "text.txt");
  text[100] ^= 1;
  put_file(folder_ / "text.txt", text);
  EXPECT_TRUE(
      says(message_of<DataError>([&] { (void)compare(a, b); }), "is not what its checkpoint"));
}

TEST_F(Bisect, RefusesADamagedCheckpoint) {
  const RecordedRun a = record("a");
  const RecordedRun b = record("b", flipped("step=4,operator=addmm,call=2,element=9,bit=3"));
  const std::filesystem::path weights =
      b.directory.checkpoints() / "step-00000002/model.safetensors";
  std::string content = file_content(weights);
  content.back() ^= 1;
  put_file(weights, content);
  EXPECT_THROW((void)compare(a, b), CheckpointError);
}

TEST_F(Bisect, RefusesRunsOfOtherPrograms) {
  const RecordedRun a = record("a");
  RecordedRun b = record("b", flipped("step=4,operator=addmm,call=2,element=9,bit=3"));
  b.arithmetic["compiler"] = "gcc 4.9";
  EXPECT_TRUE(says(message_of<CheckpointError>([&] { (void)compare(a, b); }), "gcc 4.9"));
  const Bisection allowed = bisect(a, b, {.other_programs = true});
  ASSERT_TRUE(allowed.found);
  EXPECT_TRUE(says(describe(allowed, a, b), "computed by another program or processor"));
}

TEST_F(Bisect, WithAToleranceSmallDifferencesAreAllowed) {
  const RecordedRun a = record("a");
  const RecordedRun b =
      record("b", "device: \"host:0\" " +
                      flipped("step=3,micro_batch=1,operator=addmm,call=1,element=9,bit=0"));
  const Bisection result = bisect(a, b, {.replay_equal = true, .tolerance = 1e-3});
  EXPECT_TRUE(result.same()) << describe(result, a, b);
  EXPECT_GT(result.compared, 100);
}

TEST_F(Bisect, WithAToleranceTheFirstOperatorBeyondItIsNamed) {
  const RecordedRun a = record("a");
  const RecordedRun b =
      record("b", "device: \"host:0\" " +
                      flipped("step=3,micro_batch=1,operator=addmm,call=2,element=9,bit=30"));
  const Bisection result = bisect(a, b, {.tolerance = 1e-3});
  ASSERT_TRUE(result.found) << describe(result, a, b);
  EXPECT_EQ(result.found->part, (StepPart{2, 1}));
  EXPECT_EQ(result.found->operator_name, "addmm");
  EXPECT_EQ(result.found->call, 2);
  EXPECT_EQ(result.found->element->element, 9);
  EXPECT_GT(result.found->distance, 1e-3);
}

TEST_F(Bisect, WithAToleranceTheReplayBeginsAtTheNewestCheckpointBeforeTheStep) {
  const RecordedRun a = record("a");
  for (const int step : {4, 5}) {
    const RecordedRun b =
        record(fmt::format("b{}", step),
               "device: \"host:0\" " +
                   flipped(fmt::format(
                       "step={},micro_batch=1,operator=addmm,call=2,element=9,bit=30", step)));
    const Bisection result = bisect(a, b, {.tolerance = 1e-3});
    ASSERT_TRUE(result.found) << describe(result, a, b);
    EXPECT_EQ(result.from_step, step == 4 ? 2 : 4);
    EXPECT_EQ(result.found->part, (StepPart{step - 1, 1}));
  }
}

}  // namespace
}  // namespace lockstep::train
