// What a reducer refuses, word for word, and what it says of its buckets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "dist/ddp/overlap.h"
#include "dist/ddp/reducer.h"
#include "dist/ddp/sync_batch_norm.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/layered_net.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

void expect_reducer_refused(const ReducerOptions& options, const std::string& text) {
  const LayeredNet net(kCPU, 2, 4);
  expect_error<DistError>([&] { const Reducer reducer(net.parameters, nullptr, options); },
                          "[reducer] " + text);
}

TEST(ReducerChecks, OptionsThatContradictEachOtherAreRefused) {
  const auto nothing = [](std::span<const uint32_t>, const std::vector<Tensor>&) {};
  const CommunicationHook hook{
      "halves", [](ProcessGroup&, const GradientBucket& bucket) { return bucket.values; }};
  expect_reducer_refused({.leaves = {2, 2}},
                         "leaves: expected at least one for this rank, got none.");
  expect_reducer_refused({.tree_leaves = 2, .average = true},
                         "average: a sum over leaves is divided by what the leaves are of, not by "
                         "the number of ranks. Divide it by the number of samples.");
  expect_reducer_refused({.find_unused_parameters = true, .on_reduced = nothing},
                         "on_reduced: which parameters are not used is known only when backward "
                         "has ended. Leave find_unused_parameters out.");
  const std::string neither =
      "average_over_present: expected neither average nor a tree of leaves with it. A step of "
      "tree_leaves has all its leaves, whatever the number of ranks.";
  expect_reducer_refused({.average = true, .average_over_present = true}, neither);
  expect_reducer_refused({.tree_leaves = 2, .average_over_present = true}, neither);
  expect_reducer_refused({.average_over_present = true, .on_reduced = nothing},
                         "on_reduced: what sums are divided by is known only when backward has "
                         "ended. Leave average_over_present out.");
  expect_reducer_refused({.tree_leaves = 2, .communication_hook = hook},
                         "communication_hook: a sum over leaves has the same bits on any number of "
                         "ranks, which what halves makes of each rank's sum has not. Leave one of "
                         "them out.");
}

TEST(ReducerChecks, ParametersAreDifferentLeavesThatNeedGradients) {
  const Tensor leaf = ones({2}).set_requires_grad();
  const auto refused = [&](const Tensor& tensor) {
    expect_error<AutogradError>(
        [&] {
          const Reducer reducer({{"a", leaf}, {"b", tensor}}, nullptr);
        },
        "[reducer] parameter b: expected a leaf that requires grad. Call set_requires_grad(), or "
        "leave it out.");
  };
  refused(ones({2}));
  refused(leaf * leaf);
  expect_error<AutogradError>(
      [&] {
        const Reducer reducer({{"a", leaf}, {"b", leaf}}, nullptr);
      },
      "[reducer] parameters a and b are one tensor, which has one gradient. Pass it once.");
}

TEST(ReducerChecks, AStepIsHeldToItsLeaves) {
  const LayeredNet net(kCPU, 2, 4);
  Reducer reducer(net.parameters, nullptr, {.leaves = {0, 2}});
  expect_error<DistError>([&] { reducer.go_on(); },
                          "[reducer] go_on: expected a step of one leaf, got 2.");
  reducer.begin_step();
  expect_error<DistError>([&] { reducer.expect_last_backward(); },
                          "[reducer] expect_last_backward: expected a call in the last leaf of the "
                          "step.");
  expect_error<DistError>([&] { reducer.finish(); },
                          "[reducer] finish: expected all 2 leaves of the step, got 0.");
  reducer.begin_leaf();
  net.loss(0).backward();
  expect_error<DistError>([&] { reducer.finish(); }, "expected all 2 leaves of the step, got 1.");
  reducer.begin_leaf();
  net.loss(1).backward();
  expect_error<DistError>([&] { reducer.begin_leaf(); },
                          "[reducer] expected 2 leaves in a step, got one more.");
  expect_error<DistError>([&] { reducer.answer({}); },
                          "[reducer] answer: expected a step of one leaf, got 2. Its leaves are "
                          "shared out before it begins, so that no rank can be without: give all "
                          "ranks as many samples.");
  Reducer tree(LayeredNet(kCPU, 2, 4).parameters, nullptr, {.tree_leaves = 1});
  expect_error<DistError>([&] { tree.answer({}); },
                          "expected a step of one leaf, got 1 and a tree over the ranks'. Its");
}

TEST(ReducerChecks, AParameterWithoutAGradientIsNamedWithWhatToDo) {
  const Tensor used = ones({2}).set_requires_grad(), unused = ones({2, 3}).set_requires_grad();
  const std::vector<NamedTensor> parameters = {{"used", used}, {"unused", unused}};
  const auto step = [&](const ReducerOptions& options) {
    Reducer reducer(parameters, nullptr, options);
    reducer.begin_step();
    reducer.begin_leaf();
    reducer.expect_last_backward();
    (used * used).backward(ones({2}));
    reducer.finish();
  };
  expect_error<AutogradError>(
      [&] { step({}); },
      "[backward] parameter unused [2, 3] received no gradient: expected every parameter to take "
      "part in the loss. Use it, remove it from the model, or set find_unused_parameters if only "
      "some steps use it.");
  step({.find_unused_parameters = true});
  EXPECT_FALSE(unused.grad().defined());
}

TEST(ReducerChecks, ItsBucketsAndTensorsAreDescribed) {
  const LayeredNet net(kCPU, 3, 4);
  EXPECT_EQ(description(net.parameters),
            "layer0 float32 [4, 4]\nlayer1 float32 [4, 4]\nlayer2 float32 [4, 4]\n");
  const Reducer reducer(net.parameters, nullptr,
                        {.buckets = {.first_bytes = 1, .bytes = 160}, .leaves = {0, 3}});
  const std::vector<BucketContent> contents = reducer.contents();
  ASSERT_EQ(contents.size(), 2u);
  EXPECT_EQ(contents[0].first, "layer2");
  EXPECT_EQ(contents[0].last, "layer2");
  EXPECT_EQ(contents[0].parameters, 1);
  EXPECT_EQ(contents[0].gradient_bytes, 64);
  EXPECT_EQ(contents[1].first, "layer1");
  EXPECT_EQ(contents[1].last, "layer0");
  EXPECT_EQ(contents[1].parameters, 2);
  EXPECT_EQ(contents[1].gradient_bytes, 128);
  // Three cache lines in two rows: the sums of the first two leaves, and the third.
  EXPECT_EQ(reducer.bytes(), 2 * 3 * 64);
}

TEST(Exposure, HasANameForEach) {
  EXPECT_STREQ(name(Exposure::kHidden), "hidden");
  EXPECT_STREQ(name(Exposure::kLateBucket), "late bucket");
  EXPECT_STREQ(name(Exposure::kSlowLink), "slow link");
  EXPECT_STREQ(name(Exposure::kSlowRank), "slow rank");
  EXPECT_STREQ(name(Exposure::kProcessor), "CPU");
}

TEST(SyncBatchNormChecks, ArgumentsThatDoNotFitAreRefused) {
  const auto refused = [](const std::function<void(ProcessGroup&)>& call, const std::string& text) {
    std::string texts;
    for (const std::exception_ptr& error : run_thread_ranks(2, call)) {
      ASSERT_TRUE(error);
      texts += text_of(error);
    }
    EXPECT_THAT(texts, testing::HasSubstr(text));
  };
  const auto norm = [](const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                       OptionalTensor mean, OptionalTensor variance) {
    return [=](ProcessGroup& group) {
      (void)sync_batch_norm(input, weight, bias, mean, variance, true, 0.1, 1e-5, &group);
    };
  };
  const Tensor input = ones({2, 3});
  const std::string each = "[sync_batch_norm] expected a ";
  refused(norm(ones({2, 3}, DType::kI32), {}, {}, {}, {}),
          "[sync_batch_norm] expected a floating input, got int32.");
  refused(norm(ones({3}), {}, {}, {}, {}),
          "[sync_batch_norm] expected input [batch, channels, ...], got shape [3].");
  refused(norm(input, ones({2}), {}, {}, {}),
          each + "weight for each channel, shape [3], got [2].");
  refused(norm(input, {}, ones({3, 1}), {}, {}), each + "bias for each channel, shape [3], got");
  refused(norm(input, {}, {}, ones({4}), ones({3})), each + "running mean for each channel");
  refused(norm(input, {}, {}, ones({3}), ones({4})), each + "running variance for each channel");
  refused(norm(input, {}, {}, ones({3}), {}),
          "[sync_batch_norm] expected both running mean and variance or neither, got one.");
}

}  // namespace
}  // namespace lockstep::dist
