// Ddp::join: ranks that run out of samples in different steps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <semaphore>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "dist/ddp/ddp.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/small_model.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Number of steps for which each rank has samples.
using Samples = std::vector<uint32_t>;

uint32_t sample_of(uint32_t step, size_t rank) {
  return 10 * step + 3 * static_cast<uint32_t>(rank);
}

Tensor gradient_alone(const SmallModel& model, const Tensor& parameter, uint32_t sample) {
  for (const NamedTensor& each : model.named_parameters()) each.tensor.set_grad({});
  model.loss(sample).backward();
  return parameter.grad().defined() ? parameter.grad().clone() : Tensor();
}

/// Mean over the ranks that have a sample, summed in rank order; undefined where no rank uses the
/// parameter.
Tensor mean_in_order(const SmallModel& model, const Tensor& parameter, const Samples& samples,
                     uint32_t step) {
  Tensor result;
  int present = 0;
  for (size_t rank = 0; rank < samples.size(); ++rank) {
    if (step >= samples[rank]) continue;
    ++present;
    const Tensor own = gradient_alone(model, parameter, sample_of(step, rank));
    if (own.defined()) result = result.defined() ? result.add(own) : own;
  }
  return result.defined() ? div(result, static_cast<double>(present)) : result;
}

/// Reference: one rank that trains on the samples of all ranks.
SmallModel trained_alone(const Samples& samples, bool has_extra) {
  SmallModel model;
  model.has_extra = has_extra;
  const uint32_t steps = *std::ranges::max_element(samples);
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<Tensor> means;
    for (const NamedTensor& each : model.named_parameters()) {
      means.push_back(mean_in_order(model, each.tensor, samples, step));
    }
    for (size_t i = 0; i < means.size(); ++i) {
      model.named_parameters()[i].tensor.set_grad(means[i]);
    }
    model.descend();
    model.count.fill_(step + 1);
  }
  return model;
}

DdpOptions uneven() {
  DdpOptions options;
  options.uneven_inputs = true;
  options.buckets = {.first_bytes = 100, .bytes = 100};
  return options;
}

/// Runs as many steps as `rank` has samples.
void train(const SmallModel& model, Ddp& ddp, uint32_t steps, size_t rank) {
  for (uint32_t step = 0; step < steps; ++step) {
    ddp.zero_grad();
    model.loss(sample_of(step, rank)).backward();
    model.descend();
    model.count.fill_(step + 1);
  }
}

/// Expects every rank's parameters and buffer after join() to equal those of the reference.
void expect_as_alone(const Samples& samples, const DdpOptions& options, bool has_extra = false) {
  const SmallModel alone = trained_alone(samples, has_extra);
  all_ranks(static_cast<int>(samples.size()), [&](ProcessGroup& group) {
    SmallModel model;
    model.has_extra = has_extra;
    Ddp ddp(model, group, options);
    const auto rank = static_cast<size_t>(group.rank());
    train(model, ddp, samples[rank], rank);
    const int from = ddp.join();
    EXPECT_EQ(samples[static_cast<size_t>(from)], *std::ranges::max_element(samples));
    for (size_t i = 0; i < alone.named_parameters().size(); ++i) {
      EXPECT_EQ(numbers(model.named_parameters()[i].tensor),
                numbers(alone.named_parameters()[i].tensor));
      EXPECT_FALSE(model.named_parameters()[i].tensor.grad().defined());
    }
    EXPECT_EQ(numbers(model.count), numbers(alone.count));
  });
}

TEST(Join, GradientsAreTheMeanOverTheSamplesThatThereAreBitForBit) {
  expect_as_alone({3, 1, 5, 2}, uneven());
}

TEST(Join, ARankMayHaveNoSampleAtAll) {
  expect_as_alone({2, 0, 3}, uneven());
  expect_as_alone({0, 2}, uneven());
}

TEST(Join, WithoutAnySampleNothingChanges) { expect_as_alone({0, 0, 0}, uneven()); }

TEST(Join, ARankAloneJoinsAtOnce) { expect_as_alone({2}, uneven()); }

// Tests any number of ranks and samples, with parameters that only some samples use.
RC_GTEST_PROP(JoinProperty, AnyUnevenSamplesGiveWhatOneRankMakesOfThem, ()) {
  const auto ranks = *rc::gen::inRange<size_t>(1, 5);
  const auto samples = *rc::gen::container<Samples>(ranks, rc::gen::inRange(0U, 4U));
  DdpOptions options = uneven();
  options.find_unused_parameters = *rc::gen::arbitrary<bool>();
  options.buckets.bytes = *rc::gen::element(1, 100, 1 << 20);
  expect_as_alone(samples, options, options.find_unused_parameters);
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(Join, OverAllRanksEachSampleCountsAsMuchAsBefore) {
  const SmallModel alone;
  const Tensor own = gradient_alone(alone, alone.first, sample_of(1, 1));
  all_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model;
    DdpOptions options = uneven();
    options.average_over = AverageOver::kAllRanks;
    Ddp ddp(model, group, options);
    model.loss(sample_of(0, 0)).backward();
    if (group.rank() == 1) {
      ddp.zero_grad();
      model.loss(sample_of(1, 1)).backward();
      EXPECT_EQ(numbers(ddp.gradients()[0]), numbers(own * 0.5));
    }
    ddp.join();
  });
}

TEST(Join, SumsAreOfTheRanksThatArePresent) {
  const SmallModel alone;
  const Tensor own = gradient_alone(alone, alone.second, sample_of(1, 1));
  all_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model;
    DdpOptions options = uneven();
    options.average = false;
    Ddp ddp(model, group, options);
    model.loss(sample_of(0, 0)).backward();
    ddp.zero_grad();
    if (group.rank() == 1) {
      model.loss(sample_of(1, 1)).backward();
      EXPECT_EQ(numbers(ddp.gradients()[1]), numbers(own));
    }
    ddp.join();
  });
}

/// Registers parameters in the order of backward, so that the initial guess (the reverse) is wrong.
struct Reversed : SmallModel {
  std::vector<NamedTensor> named_parameters() const {
    return {{"second", second}, {"first", first}};
  }
};

TEST(Join, TheOrderComesFromTheLowestRankThatHasSamples) {
  all_ranks(3, [](ProcessGroup& group) {
    const Reversed model;
    Ddp ddp(model, group, uneven());
    const auto order = [&] {
      std::vector<uint32_t> result;
      for (const Bucket& bucket : ddp.reducer().plan().buckets) {
        result.insert(result.end(), bucket.parameters.begin(), bucket.parameters.end());
      }
      return result;
    };
    EXPECT_THAT(order(), ElementsAre(1, 0));
    // Rank 0 has no samples in the first epoch, and as many as the others in the second.
    if (group.rank() != 0) train(model, ddp, static_cast<uint32_t>(group.rank()), 1);
    ddp.join();
    EXPECT_THAT(order(), ElementsAre(0, 1));
    EXPECT_TRUE(ddp.reducer().in_learnt_order());
    for (int step = 0; step < 2; ++step) {
      ddp.zero_grad();
      model.loss(7).backward();
      EXPECT_EQ(numbers(model.first.grad()), numbers(gradient_alone(model, model.first, 7)));
    }
    ddp.join();
  });
}

TEST(Join, TheOrderIsNotThatOfARankWithoutSamples) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, uneven());
    if (group.rank() == 1) train(model, ddp, 2, 1);
    ddp.join();
    std::vector<uint32_t> order;
    for (const Bucket& bucket : ddp.reducer().plan().buckets) {
      order.insert(order.end(), bucket.parameters.begin(), bucket.parameters.end());
    }
    EXPECT_THAT(order, ElementsAre(1, 0)) << "that of backward";
  });
}

TEST(Join, BuffersAreThoseOfTheLowestRankThatHasSamplesInEveryStep) {
  all_ranks(3, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, uneven());
    for (int step = 0; step < 2 && group.rank() > 0; ++step) {
      ddp.zero_grad();
      model.count.fill_(10 * step + group.rank());
      model.loss(0).backward();
      EXPECT_EQ(numbers(model.count), std::vector<float>{static_cast<float>(10 * step + 1)});
    }
    EXPECT_EQ(ddp.join(), 1);
  });
}

TEST(Join, AParameterThatNoSampleUsesHasNoGradient) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallModel model;
    model.has_extra = true;
    DdpOptions options = uneven();
    options.find_unused_parameters = true;
    Ddp ddp(model, group, options);
    for (int step = 0; step < 2 && group.rank() == 1; ++step) {
      ddp.zero_grad();
      model.loss(0).backward();  // does not use `extra`
      EXPECT_TRUE(model.first.grad().defined());
      EXPECT_FALSE(model.extra.grad().defined());
    }
    ddp.join();
  });
}

TEST(Join, MeansOverAllRanksAreNotAddedTo) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    DdpOptions options = uneven();
    options.average_over = AverageOver::kAllRanks;
    Ddp ddp(model, group, options);
    model.loss(0).backward();
    expect_error<AutogradError>([&] { model.loss(0).backward(); },
                                "expected zero_grad() after each step");
    ddp.zero_grad();
    ddp.join();
  });
}

TEST(Join, OthersMayAddToTheirGradientsMeanwhile) {
  all_ranks(2, [](ProcessGroup& group) {
    const Reversed model;
    Ddp ddp(model, group, uneven());
    model.loss(3).backward();
    const std::vector<float> once = numbers(model.first.grad());
    if (group.rank() == 1) {
      // This rank still uses the initial order, which rank 0 has already left.
      model.loss(3).backward();
      const std::vector<float> twice = numbers(model.first.grad());
      for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]);
      ddp.zero_grad();
      {
        const auto no_sync = ddp.no_sync();
        model.loss(3).backward();
      }
      model.loss(3).backward();
      EXPECT_EQ(numbers(model.first.grad()), twice);
    }
    ddp.join();
  });
}

TEST(Join, AStaticGraphStaysKnown) {
  all_ranks(3, [](ProcessGroup& group) {
    SmallModel model;
    model.has_extra = true;
    DdpOptions options = uneven();
    options.find_unused_parameters = options.static_graph = true;
    Ddp ddp(model, group, options);
    // Only rank 1 uses `extra`; rank 2 has no sample in the first epoch.
    const auto rank = static_cast<uint32_t>(group.rank());
    for (uint32_t step = 0; step < 2 * (2 - rank); ++step) {
      ddp.zero_grad();
      model.loss(rank).backward();
      EXPECT_TRUE(model.extra.grad().defined());
    }
    ddp.join();
    model.loss(rank).backward();
    EXPECT_TRUE(model.extra.grad().defined());
    ddp.join();
  });
}

TEST(Join, ARankThatDidNotBeginAnewIsNamed) {
  const auto errors = run_thread_ranks(3, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, uneven());
    model.loss(0).backward();
    if (group.rank() != 1) ddp.zero_grad();
    model.loss(0).backward();
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<MismatchError>([&] { std::rethrow_exception(error); },
                                "[ddp] ranks 0 and 1 came to this backward from other steps");
  }
}

TEST(Join, GradientsThatWereNotSummedAreNotLostSilently) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, uneven());
    {
      const auto no_sync = ddp.no_sync();
      expect_error<AutogradError>([&] { ddp.join(); }, "outside of no_sync");
      model.loss(0).backward();
    }
    expect_error<AutogradError>([&] { ddp.join(); }, "1 backward(s) under no_sync()");
    ddp.discard_grad();
    ddp.join();
  });
}

TEST(Join, StepsOfSeveralLeavesOrOfATreeAreRefused) {
  const SmallModel model;
  Reducer leaves(model.named_parameters(), nullptr, {.leaves = {0, 2}});
  expect_error<DistError>([&] { leaves.answer({.ranks = 1}); }, "a step of one leaf, got 2");
  const SmallModel other;
  Reducer tree(other.named_parameters(), nullptr, {.leaves = {0, 1}, .tree_leaves = 1});
  expect_error<DistError>([&] { tree.answer({.ranks = 1}); }, "a tree over the ranks'");
  const SmallModel third;
  expect_error<DistError>(
      [&] {
        Reducer(third.named_parameters(), nullptr,
                {.tree_leaves = 1, .average_over_present = true});
      },
      "average_over_present");
}

// --- without the option --------------------------------------------------------------------------

TEST(Join, WithoutTheOptionItIsRefused) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group);
    ddp.join();
  });
  EXPECT_THAT(texts_of(errors), HasSubstr("[ddp] join: expected DdpOptions::uneven_inputs"));
}

/// Error of rank 0 of two ranks with two and one samples, where rank 1 calls `instead` after its
/// sample.
template <class F>
std::exception_ptr error_of_the_longer(F instead) {
  return run_thread_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group);
    model.loss(0).backward();
    ddp.zero_grad();
    if (group.rank() == 1) return instead(group);
    model.loss(1).backward();
  })[0];
}

TEST(Join, WithoutTheOptionARankThatEndsEarlyIsAnErrorOfTheOthers) {
  const auto error = error_of_the_longer([](ProcessGroup&) {});
  ASSERT_TRUE(error);
  expect_error<PeerLostError>([&] { std::rethrow_exception(error); }, "rank 1");
}

TEST(Join, WithoutTheOptionARankThatGoesOnElsewhereIsAnErrorOfTheOthers) {
  const auto error = error_of_the_longer(
      [](ProcessGroup& group) { EXPECT_THROW(group.barrier().wait(), MismatchError); });
  ASSERT_TRUE(error);
  expect_error<MismatchError>([&] { std::rethrow_exception(error); }, "barrier", "all_reduce");
}

TEST(Join, WithoutTheOptionARankThatOnlyWaitsIsAnErrorOfTheOthersInTime) {
  std::binary_semaphore failed{0};
  all_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group);
    if (group.rank() == 1) return failed.acquire();
    group.set_timeout(std::chrono::milliseconds(300));
    expect_error<TimeoutError>([&] { model.loss(0).backward(); }, "rank 1");
    failed.release();
  });
}

}  // namespace
}  // namespace lockstep::dist
