#include "dist/ddp/reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/device/copies.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/stream.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/layered_net.h"
#include "tests/dist/group/labelled_operations.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::HasSubstr;

/// Limits that give two or three buckets.
BucketLimits small_buckets() { return {.first_bytes = 3000, .bytes = 6000}; }

/// Options for steps of `leaves` leaves with two samples each, as rank `rank` of `ranks`.
ReducerOptions tree_options(int64_t leaves, int rank, int ranks) {
  ReducerOptions options;
  options.buckets = small_buckets();
  options.leaves = LeafDeal::even(leaves, ranks).of(rank);
  options.tree_leaves = leaves;
  return options;
}

TEST(Reducer, GradientsOfRanksAreSummedAndEqualOnAll) {
  const LayeredNet alone;
  Reducer whole(alone.parameters, nullptr);
  whole.begin_step();
  whole.begin_leaf();
  for (int64_t sample = 0; sample < 6; ++sample) alone.loss(sample).backward();
  whole.finish();
  const std::vector<float> expected = numbers(whole.gradients());

  std::vector<std::vector<float>> results(3);
  all_ranks(3, [&](ProcessGroup& group) {
    const LayeredNet net;
    ReducerOptions options;
    options.buckets = small_buckets();
    Reducer reducer(net.parameters, &group, options);
    const int64_t first = 2 * group.rank();
    for (int step = 0; step < 3; ++step) run_step(reducer, net, {0, 1}, first);
    results[static_cast<size_t>(group.rank())] = numbers(reducer.gradients());
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  ASSERT_EQ(results[0].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(results[0][i], expected[i], 1e-5);
}

/// Gradients after three steps, so that buckets were launched during the last two backwards.
std::vector<std::vector<float>> tree_gradients(int64_t leaves, int ranks, Device device) {
  std::vector<std::vector<float>> results(static_cast<size_t>(ranks));
  all_ranks(ranks, [&](ProcessGroup& group) {
    // Ranks that share a device need separate streams.
    std::unique_ptr<OwnedStream> stream;
    std::optional<StreamGuard> guard;
    if (device != kCPU) {
      stream = std::make_unique<OwnedStream>(device);
      guard.emplace(stream->get());
    }
    const LayeredNet net(device);
    const ReducerOptions options = tree_options(leaves, group.rank(), ranks);
    Reducer reducer(net.parameters, &group, options);
    for (int step = 0; step < 3; ++step) run_step(reducer, net, options.leaves);
    results[static_cast<size_t>(group.rank())] = numbers(reducer.gradients());
  });
  return results;
}

TEST(Reducer, OverLeavesTheBitsDoNotDependOnTheNumberOfRanks) {
  const std::vector<float> expected = tree_gradients(8, 1, kCPU)[0];
  for (const int ranks : {2, 3, 4, 5, 6, 8}) {
    for (const std::vector<float>& result : tree_gradients(8, ranks, kCPU)) {
      EXPECT_TRUE(result == expected) << ranks << " ranks";
    }
  }
}

TEST(Reducer, ADeviceWithStreamsHasTheBitsOfTheCpu) {
  const std::vector<float> expected = tree_gradients(4, 1, kCPU)[0];
  for (const int ranks : {1, 2, 3}) {
    for (const std::vector<float>& result :
         tree_gradients(4, ranks, Device(DeviceType::kHost, 0))) {
      EXPECT_TRUE(result == expected) << ranks << " ranks";
    }
  }
}

TEST(Reducer, LeavesOfOneRankWithoutATreeOverRanksAreAddedByHalves) {
  const LayeredNet net;
  ReducerOptions options;
  options.leaves = {0, 8};
  Reducer reducer(net.parameters, nullptr, options);
  run_step(reducer, net, options.leaves);
  EXPECT_EQ(numbers(reducer.gradients()), tree_gradients(8, 1, kCPU)[0]);
}

TEST(Reducer, OneRankAloneJoinsAllLeavesWhateverTheirNumber) {
  const LayeredNet net;
  Reducer reducer(net.parameters, nullptr, tree_options(7, 0, 1));
  run_step(reducer, net, {0, 7});
  const std::vector<float> alone = numbers(reducer.gradients());
  for (const int ranks : {2, 3}) {
    for (const std::vector<float>& result : tree_gradients(7, ranks, kCPU)) {
      EXPECT_TRUE(result == alone) << ranks << " ranks";
    }
  }
}

TEST(Reducer, BucketsFollowTheOrderThatTheFirstStepShowed) {
  all_ranks(2, [](ProcessGroup& group) {
    LayeredNet net;
    // Registered so that the reverse of the registration order is not the order of backward.
    std::swap(net.parameters[0], net.parameters[3]);
    std::vector<NamedTensor> registered = net.parameters;
    std::swap(net.parameters[0], net.parameters[3]);
    ReducerOptions options;
    options.buckets = small_buckets();
    Reducer reducer(registered, &group, options);
    const auto order = [&] {
      std::vector<std::string> names;
      for (const Bucket& bucket : reducer.plan().buckets) {
        for (const uint32_t each : bucket.parameters) names.push_back(registered[each].name);
      }
      return names;
    };
    EXPECT_THAT(order(), testing::ElementsAre("layer4", "layer0", "layer2", "layer1", "layer3"));
    run_step(reducer, net, {0, 1});
    const std::vector<float> first = numbers(reducer.gradients());
    run_step(reducer, net, {0, 1});
    EXPECT_THAT(order(), testing::ElementsAre("layer4", "layer3", "layer2", "layer1", "layer0"));
    EXPECT_EQ(numbers(reducer.gradients()), first);
  });
}

TEST(Reducer, BucketsLeaveWhileBackwardRuns) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net;
    ReducerOptions options;
    options.buckets = small_buckets();
    Reducer reducer(net.parameters, &group, options);
    // The gradient of the first layer is the last one.
    BucketTimes::TimePoint last;
    register_hook(net.parameters[0].tensor, [&](const Tensor&) {
      last = std::chrono::steady_clock::now();
      return Tensor();
    });
    run_step(reducer, net, {0, 1});
    EXPECT_GT(reducer.times().buckets()[0].launched, last) << "nothing is known in the first step";
    run_step(reducer, net, {0, 1});
    const std::vector<BucketTimes> times = reducer.times().buckets();
    ASSERT_GT(times.size(), 2u);
    EXPECT_LT(times[0].launched, last);
    EXPECT_LT(times[1].launched, last);
    EXPECT_GT(times.back().launched, last);
    for (const BucketTimes& each : times) {
      EXPECT_LE(each.ready, each.launched);
      EXPECT_LE(each.launched, each.done);
    }
  });
}

TEST(Reducer, TimesOnADeviceAreThoseOfItsWork) {
  all_ranks(2, [](ProcessGroup& group) {
    const Device host{DeviceType::kHost, 0};
    const OwnedStream stream(host);
    const StreamGuard guard(stream.get());
    const LayeredNet net(host);
    ReducerOptions options;
    options.buckets = small_buckets();
    Reducer reducer(net.parameters, &group, options);
    run_step(reducer, net, {0, 1});
    // Keeps the device busy before the last gradient, but not the thread that queues it.
    register_hook(net.parameters[0].tensor, [&](const Tensor&) {
      current_stream(host).add_callback(
          [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); });
      return Tensor();
    });
    run_step(reducer, net, {0, 1});
    const std::vector<BucketTimes> times = reducer.times().buckets();
    constexpr std::chrono::milliseconds kBusy(29);
    EXPECT_GE(times.back().ready - times[0].ready, kBusy);
    EXPECT_GE(reducer.times().backward_ended() - times[0].ready, kBusy);
    // If the host is slower than the device, the last bucket ends before backward does.
    const std::chrono::duration<double> after =
        times.back().done - reducer.times().backward_ended();
    EXPECT_EQ(reducer.times().exposed_seconds(), std::max(0.0, after.count()));
    for (const BucketTimes& each : times) {
      EXPECT_LE(each.ready, each.launched);
      EXPECT_LT(each.launched, each.done);
    }
  });
}

TEST(Reducer, GradientsEndInTheArenaWithoutACopy) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net;
    Reducer reducer(net.parameters, &group);
    run_step(reducer, net, {0, 1});
    const int64_t before = hidden_copies().copies;
    run_step(reducer, net, {0, 1});
    EXPECT_EQ(hidden_copies().copies - before, 0);
    for (size_t i = 0; i < net.parameters.size(); ++i) {
      EXPECT_EQ(net.parameters[i].tensor.grad().data(), reducer.gradients()[i].data());
    }
  });
}

TEST(Reducer, AverageDividesByTheNumberOfRanks) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net;
    ReducerOptions options;
    options.average = true;
    Reducer reducer(net.parameters, &group, options);
    run_step(reducer, net, {0, 1});
    const std::vector<float> average = numbers(reducer.gradients());
    const LayeredNet other;
    Reducer sums(other.parameters, &group);
    run_step(sums, other, {0, 1});
    const std::vector<float> sum = numbers(sums.gradients());
    for (size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(average[i], sum[i] / 2);
  });
}

TEST(Reducer, AParameterWithoutAGradientIsAnErrorOfTheSameStepOnAllRanks) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net;
    Reducer reducer(net.parameters, &group);
    run_step(reducer, net, {0, 1});
    reducer.begin_step();
    reducer.begin_leaf();
    // Rank 1 does not use the last layer.
    const Tensor loss = net.loss(0, group.rank() == 1 ? 4 : 5);
    reducer.expect_last_backward();
    loss.backward();
    reducer.finish();
  });
  EXPECT_THAT(text_of(errors[1]), HasSubstr("[backward] parameter layer4 [24, 24] received no"));
  // Rank 0 gets either the error of rank 1 or the end of its group.
  EXPECT_THAT(text_of(errors[0]), HasSubstr("rank 1"));
}

TEST(Reducer, UnusedParametersCountAsZeroWhereThatIsAskedFor) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net;
    ReducerOptions options;
    options.find_unused_parameters = true;
    options.buckets = small_buckets();
    Reducer reducer(net.parameters, &group, options);
    for (int step = 0; step < 3; ++step) {
      // Rank 0 uses three layers, rank 1 four; no rank uses the last.
      reducer.begin_step();
      reducer.begin_leaf();
      reducer.expect_last_backward();
      net.loss(group.rank(), 3 + static_cast<size_t>(group.rank())).backward();
      reducer.finish();
      const LayeredNet other;
      Reducer alone(other.parameters, nullptr, {.leaves = {0, 1}, .find_unused_parameters = true});
      alone.begin_step();
      alone.begin_leaf();
      other.loss(0, 3).backward();
      other.loss(1, 4).backward();
      alone.finish();
      EXPECT_EQ(numbers(reducer.gradients()), numbers(alone.gradients()));
      EXPECT_TRUE(net.parameters[3].tensor.grad().defined());
      EXPECT_FALSE(net.parameters[4].tensor.grad().defined());
    }
  });
}

TEST(Reducer, RanksWithOtherParametersAreRefusedNamingTheFirst) {
  const auto errors = run_thread_ranks(3, [](ProcessGroup& group) {
    LayeredNet net;
    if (group.rank() == 2) net.parameters[1].name = "other";
    Reducer reducer(net.parameters, &group);
  });
  for (const std::exception_ptr& error : errors) {
    EXPECT_THAT(text_of(error),
                HasSubstr("[reducer] rank 2 has another model than rank 0: expected \"layer1 "
                          "float32 [24, 24]\", got \"other float32 [24, 24]\"."));
  }
}

TEST(Reducer, MoreGradientsThanInTheFirstStepAreAnError) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net;
    Reducer reducer(net.parameters, &group);
    run_step(reducer, net, {0, 1});
    reducer.begin_step();
    reducer.begin_leaf();
    reducer.expect_last_backward();
    net.loss(0).backward();
    net.loss(1).backward();
    reducer.finish();
  });
  EXPECT_THAT(text_of(errors[0]) + text_of(errors[1]),
              HasSubstr("receives another gradient after the 1 that came in the first step"));
}

TEST(Reducer, TheFirstStepMayShowSeveralBackwardsToBeTheLast) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net;
    Reducer reducer(net.parameters, &group);
    for (int step = 0; step < 3; ++step) {
      reducer.begin_step();
      reducer.begin_leaf();
      reducer.expect_last_backward();
      net.loss(2 * group.rank()).backward();
      net.loss(2 * group.rank() + 1).backward();
      reducer.finish();
    }
    const std::vector<float> twice = numbers(reducer.gradients());
    const LayeredNet other;
    Reducer once(other.parameters, &group);
    run_step(once, other, {0, 1}, 2 * group.rank());
    EXPECT_EQ(twice, numbers(once.gradients()));
  });
}

TEST(Reducer, GradientsOfGradientsAreRefused) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net;
    Reducer reducer(net.parameters, &group);
    reducer.begin_step();
    reducer.begin_leaf();
    reducer.expect_last_backward();
    const Tensor loss = net.loss(0);
    backward(std::vector<Tensor>{loss}, {}, {.create_graph = true});
    reducer.finish();
  });
  EXPECT_THAT(text_of(errors[0]) + text_of(errors[1]), HasSubstr("[backward] create_graph"));
}

TEST(Reducer, AStepThatIsNotFinishedIsRefused) {
  const LayeredNet net;
  Reducer reducer(net.parameters, nullptr, {.leaves = {0, 2}});
  reducer.begin_step();
  expect_error<DistError>([&] { reducer.finish(); }, "expected all 2 leaves of the step, got 0");
  reducer.begin_leaf();
  net.loss(0).backward();
  expect_error<DistError>([&] { reducer.expect_last_backward(); }, "the last leaf");
  expect_error<DistError>([&] { reducer.finish(); }, "expected all 2 leaves of the step, got 1");
  reducer.begin_leaf();
  net.loss(1).backward();
  reducer.finish();
  expect_error<DistError>([&] { reducer.begin_leaf(); }, "one more");
}

TEST(Reducer, ALeafWithoutAGradientIsAnErrorBeforeTheNext) {
  const LayeredNet net;
  Reducer reducer(net.parameters, nullptr, {.leaves = {0, 2}});
  reducer.begin_step();
  reducer.begin_leaf();
  net.loss(0, 4).backward();
  expect_error<AutogradError>([&] { reducer.begin_leaf(); }, "parameter layer4");
}

TEST(Reducer, AfterItParametersKeepGradientsOfTheirOwnAgain) {
  const LayeredNet net;
  { Reducer reducer(net.parameters, nullptr); }
  net.loss(0).backward();
  EXPECT_TRUE(net.parameters[0].tensor.grad().defined());
}

TEST(Reducer, ParametersOfSeveralDtypesHaveBucketsOfTheirOwn) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor a = ones({3}, {DType::kF32, kCPU}).set_requires_grad();
    const Tensor b = ones({3}, {DType::kF64, kCPU}).set_requires_grad();
    Reducer reducer({{"a", a}, {"b", b}}, &group);
    for (int step = 0; step < 2; ++step) {
      reducer.begin_step();
      reducer.begin_leaf();
      reducer.expect_last_backward();
      (sum(a).to(DType::kF64) + sum(b) * 2.0).backward();
      reducer.finish();
      EXPECT_EQ(reducer.gradients()[0].data<float>()[2], 2);
      EXPECT_EQ(reducer.gradients()[1].data<double>()[2], 4);
    }
    EXPECT_EQ(reducer.plan().buckets.size(), 2u);
  });
}

// --- on_reduced ----------------------------------------------------------------------------------

TEST(Reducer, BucketsAreHandedOverInBackwardAsSoonAsTheirSumsAreThere) {
  const LayeredNet net;
  std::vector<uint32_t> handed_over;
  bool first_layer_was_open = false;  // at the first handover
  ReducerOptions options;
  options.buckets = small_buckets();
  options.on_reduced = [&](std::span<const uint32_t> parameters, const std::vector<Tensor>&) {
    if (handed_over.empty()) first_layer_was_open = !net.parameters[0].tensor.grad().defined();
    handed_over.insert(handed_over.end(), parameters.begin(), parameters.end());
  };
  Reducer reducer(net.parameters, nullptr, options);
  for (int step = 0; step < 3; ++step) {
    handed_over.clear();
    reducer.begin_step();
    reducer.begin_leaf();
    if (step == 2) net.loss(1).backward();
    EXPECT_TRUE(handed_over.empty()) << "before the last backward of the step";
    const Tensor loss = net.loss(2);
    reducer.expect_last_backward();
    loss.backward();
    EXPECT_EQ(handed_over.size(), step == 0 ? 0U : 5U) << "what is expected is learnt in step 0";
    reducer.finish();
    EXPECT_EQ(handed_over, (std::vector<uint32_t>{4, 3, 2, 1, 0}));
    EXPECT_EQ(first_layer_was_open, step == 1) << step;
  }
}

TEST(Reducer, HandsEveryBucketOverOnceInTheOrderOfThePlanWithItsFinalSums) {
  all_ranks(3, [](ProcessGroup& group) {
    const LayeredNet net;
    std::vector<uint32_t> handed_over;
    std::vector<float> sums;
    ReducerOptions options;
    options.buckets = small_buckets();
    options.on_reduced = [&](std::span<const uint32_t> parameters,
                             const std::vector<Tensor>& complete) {
      for (const uint32_t each : parameters) {
        handed_over.push_back(each);
        const std::vector<float> here = numbers({complete[each]});
        sums.insert(sums.end(), here.begin(), here.end());
      }
    };
    Reducer reducer(net.parameters, &group, options);
    for (int step = 0; step < 4; ++step) {
      handed_over.clear();
      sums.clear();
      run_step(reducer, net, {0, 1}, 2 * group.rank());
      std::vector<uint32_t> planned;
      std::vector<Tensor> gradients;
      for (const Bucket& bucket : reducer.plan().buckets) {
        for (const uint32_t each : bucket.parameters) {
          planned.push_back(each);
          gradients.push_back(reducer.gradients()[each]);
        }
      }
      EXPECT_EQ(handed_over, planned);
      EXPECT_EQ(sums, numbers(gradients));
    }
  });
}

TEST(Reducer, AParameterThatWasUsedWithoutItsGradientIsNotChangedUnseen) {
  const LayeredNet net;
  ReducerOptions options;
  options.buckets = {.first_bytes = 1, .bytes = 1};
  options.on_reduced = [&](std::span<const uint32_t> parameters, const std::vector<Tensor>&) {
    const NoGradGuard no_grad;
    for (const uint32_t each : parameters) mul_(net.parameters[each].tensor, 0.5);
  };
  Reducer reducer(net.parameters, nullptr, options);
  const auto step = [&](bool detached) {
    reducer.begin_step();
    reducer.begin_leaf();
    const Tensor first = mm(ones({1, net.width()}), net.parameters[0].tensor);
    const Tensor last = net.parameters[4].tensor;
    Tensor x = detached ? mm(first, last.detach()) : first;
    for (size_t layer = 1; layer < 5; ++layer) x = tanh(mm(x, net.parameters[layer].tensor));
    reducer.expect_last_backward();
    sum(x).backward();
    reducer.finish();
  };
  step(false);
  step(false);
  expect_error<AutogradError>([&] { step(true); }, "version");
}

TEST(Reducer, OnReducedIsNotForUnusedParameters) {
  const LayeredNet net;
  ReducerOptions options;
  options.find_unused_parameters = true;
  options.on_reduced = [](std::span<const uint32_t>, const std::vector<Tensor>&) {};
  EXPECT_THROW(Reducer(net.parameters, nullptr, options), DistError);
}

TEST(Reducer, OperationsCarryTheNumberOfTheirBucket) {
  using testing::ElementsAre;
  const auto train = [](const ReducerOptions& options, ProcessGroup& group) {
    const LayeredNet net(kCPU, /*layers=*/2);
    Reducer reducer(net.parameters, &group, options);
    for (int step = 0; step < 2; ++step) run_step(reducer, net, {0, 1}, group.rank());
  };
  ReducerOptions options;
  options.buckets = {.first_bytes = 1, .bytes = 1};
  EXPECT_THAT(labelled_operations([&](ProcessGroup& group) { train(options, group); }),
              ElementsAre("all_reduce of bucket 1", "all_reduce of bucket 2"));
  // A hook calls what it wants, from a thread of its own.
  options.communication_hook = {.name = "broadcast",
                                .call = [](ProcessGroup& group, const GradientBucket& bucket) {
                                  group.broadcast(bucket.values, 0).wait();
                                  return bucket.values;
                                }};
  EXPECT_THAT(labelled_operations([&](ProcessGroup& group) { train(options, group); }),
              ElementsAre("broadcast of bucket 1", "broadcast of bucket 2"));
}

}  // namespace
}  // namespace lockstep::dist
