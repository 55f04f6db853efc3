#include "dist/ddp/communication_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <latch>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/parallel.h"
#include "core/device/stream_sanitizer.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/hook_runner.h"
#include "dist/group/failure.h"
#include "tests/core/device/watched_memory.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/known_gradients.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Options with one bucket per parameter and the given hook.
ReducerOptions with_hook(CommunicationHook hook) {
  ReducerOptions options;
  options.buckets = {.first_bytes = 1, .bytes = 1};
  options.communication_hook = std::move(hook);
  return options;
}

CommunicationHook plain_sum() {
  return {"plain", [](ProcessGroup& group, const GradientBucket& bucket) {
            group.all_reduce(bucket.values).wait();
            return bucket.values;
          }};
}

const std::vector<std::vector<int64_t>> kShapes = {{3, 5}, {7}, {2, 2, 3}};

/// Gradients that depend on the rank and the step.
std::vector<Tensor> random_gradients(int rank, int step = 0) {
  std::vector<Tensor> list;
  for (const std::vector<int64_t>& shape : kShapes) {
    const auto seed = static_cast<uint32_t>(100 * step + 10 * rank) + list.size();
    list.push_back(random_values(static_cast<uint32_t>(seed), shape));
  }
  return list;
}

/// Gradients of rank 0 after `steps` steps of `ranks` ranks. Checks that all ranks have the same.
std::vector<std::vector<double>> results(const ReducerOptions& options, int ranks, int steps = 2,
                                         Device device = kCPU) {
  std::vector<std::vector<std::vector<double>>> found(static_cast<size_t>(ranks));
  all_ranks(ranks, [&](ProcessGroup& group) {
    const OwnCurrentStream own(device);
    const std::vector<NamedTensor> parameters = parameters_of(kShapes, {DType::kF32, device});
    Reducer reducer(parameters, &group, options);
    for (int step = 0; step < steps; ++step) {
      step_with(reducer, parameters, random_gradients(group.rank(), step));
    }
    for (const Tensor& each : reducer.gradients()) {
      found[static_cast<size_t>(group.rank())].push_back(numbers_of(each));
    }
  });
  for (const auto& each : found) EXPECT_EQ(each, found[0]);
  return found[0];
}

TEST(CommunicationHook, AHookThatSumsIsAnAllReduce) {
  ReducerOptions plain = with_hook({});
  EXPECT_EQ(results(with_hook(plain_sum()), 3), results(plain, 3));
  ReducerOptions average = with_hook(plain_sum());
  plain.average = average.average = true;
  EXPECT_EQ(results(average, 2), results(plain, 2));
}

TEST(CommunicationHook, WhatItReturnsTakesTheSumsPlace) {
  const auto sums = results(with_hook({}), 2);
  const CommunicationHook in_place{"in place",
                                   [](ProcessGroup& group, const GradientBucket& bucket) {
                                     group.all_reduce(bucket.values).wait();
                                     return mul_(bucket.values, 4);
                                   }};
  const CommunicationHook another{"another", [](ProcessGroup& group, const GradientBucket& bucket) {
                                    const Tensor copy = bucket.values * 4;
                                    group.all_reduce(copy).wait();
                                    return copy;
                                  }};
  for (const CommunicationHook& hook : {in_place, another}) {
    const auto found = results(with_hook(hook), 2);
    for (size_t i = 0; i < sums.size(); ++i) {
      for (size_t j = 0; j < sums[i].size(); ++j) EXPECT_EQ(found[i][j], 4 * sums[i][j]);
    }
  }
}

TEST(CommunicationHook, ItMayChangeEachGradientByItself) {
  // The example in docs/distributed.md.
  const CommunicationHook clipped{"clipped", [](ProcessGroup& group, const GradientBucket& bucket) {
                                    for (const auto& gradient : bucket.gradients) {
                                      const Tensor length = linalg_vector_norm(gradient.values);
                                      gradient.values.div_(maximum(length, ones_like(length)));
                                    }
                                    group.all_reduce(bucket.values).wait();
                                    return bucket.values;
                                  }};
  const auto found = results(with_hook(clipped), 2);
  for (size_t i = 0; i < kShapes.size(); ++i) {
    std::vector<double> expected(found[i].size());
    for (int rank = 0; rank < 2; ++rank) {
      const std::vector<double> own = numbers_of(random_gradients(rank, 1)[i]);
      double squares = 0;
      for (const double each : own) squares += each * each;
      ASSERT_GT(squares, 1);
      for (size_t j = 0; j < own.size(); ++j) expected[j] += own[j] / std::sqrt(squares);
    }
    for (size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(found[i][j], expected[j], 1e-6);
  }
}

TEST(CommunicationHook, ItIsGivenBucketsInTheOrderOfThePlanOutsideOfRecording) {
  all_ranks(2, [](ProcessGroup& group) {
    std::vector<std::string> seen;
    CommunicationHook hook = plain_sum();
    hook.call = [&seen](ProcessGroup& ranks, const GradientBucket& bucket) {
      EXPECT_EQ(ranks.size(), 2);
      EXPECT_NE(ranks.name(), "world");
      EXPECT_FALSE(is_grad_enabled());
      std::string text = std::to_string(bucket.index) + (bucket.is_last ? " last:" : ":");
      for (const GradientBucket::Gradient& each : bucket.gradients) {
        text += " " + std::string(each.name) + " " + each.values.shape();
        EXPECT_EQ(each.name, "p" + std::to_string(each.parameter));
        EXPECT_GE(each.values.data(), bucket.values.data());
      }
      seen.push_back(text);
      ranks.all_reduce(bucket.values).wait();
      return bucket.values;
    };
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group, with_hook(hook));
    for (int step = 0; step < 2; ++step) {
      step_with(reducer, parameters, random_gradients(group.rank()));
      EXPECT_THAT(seen, ElementsAre("0: p2 [2, 2, 3]", "1: p1 [7]", "2 last: p0 [3, 5]"));
      seen.clear();
    }
    for (const BucketTimes& each : reducer.times().buckets()) {
      EXPECT_LE(each.ready, each.launched);
      EXPECT_LE(each.launched, each.done);
    }
  });
}

TEST(CommunicationHook, ItRunsWhileBackwardGoesOn) {
  all_ranks(2, [](ProcessGroup& group) {
    std::promise<void> called;
    std::atomic<int> calls{0};
    CommunicationHook hook = plain_sum();
    hook.call = [&](ProcessGroup& ranks, const GradientBucket& bucket) {
      if (++calls == 4) called.set_value();  // the first bucket of the second step
      ranks.all_reduce(bucket.values).wait();
      return bucket.values;
    };
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group, with_hook(hook));
    step_with(reducer, parameters, random_gradients(group.rank()));
    // The gradient of p0 is the last one. Its hook waits, so backward cannot end before the call.
    register_hook(parameters[0].tensor, [&](const Tensor&) {
      EXPECT_EQ(called.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
      return Tensor();
    });
    step_with(reducer, parameters, random_gradients(group.rank()));
  });
}

TEST(CommunicationHook, ItsOperationsDoNotMeetThoseOfTheMainThread) {
  all_ranks(2, [](ProcessGroup& group) {
    CommunicationHook hook = plain_sum();
    hook.call = [](ProcessGroup& ranks, const GradientBucket& bucket) {
      ranks.barrier().wait();
      ranks.all_reduce(bucket.values).wait();
      ranks.broadcast(bucket.values, 1).wait();
      return bucket.values;
    };
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group, with_hook(hook));
    step_with(reducer, parameters, random_gradients(group.rank()));
    const Tensor own = full({1000}, group.rank() + 1.0);
    // Rank 0 queues its operation before the step, rank 1 after it.
    const Work early = group.rank() == 0 ? group.all_reduce(own) : Work();
    step_with(reducer, parameters, random_gradients(group.rank(), 1));
    const Work late = group.rank() == 1 ? group.all_reduce(own) : Work();
    early.wait();
    late.wait();
    EXPECT_EQ(numbers_of(own), std::vector<double>(1000, 3));
    const std::vector<double> a = numbers_of(random_gradients(0, 1)[1]);
    const std::vector<double> b = numbers_of(random_gradients(1, 1)[1]);
    const std::vector<double> found = numbers_of(reducer.gradients()[1]);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(found[i], a[i] + b[i], 1e-6);
  });
}

// --- those that are there ------------------------------------------------------------------------

TEST(CommunicationHook, Bf16IsTheRoundedSumOfRoundedGradients) {
  const auto found = results(with_hook(bf16_compress_hook()), 3, 1);
  for (size_t i = 0; i < kShapes.size(); ++i) {
    Tensor sums = zeros(kShapes[i]);
    for (int rank = 0; rank < 3; ++rank) {
      sums.add_(random_gradients(rank)[i].to(DType::kBF16).to(DType::kF32));
    }
    EXPECT_EQ(found[i], numbers_of(sums.to(DType::kBF16)));
  }
}

/// Sums of three ranks' gradients, where rank r has `gradients` times r + 1.
std::vector<std::vector<double>> f16_sums(const std::vector<Tensor>& gradients, DType dtype) {
  std::vector<std::vector<double>> found;
  all_ranks(3, [&](ProcessGroup& group) {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<Tensor> own;
    for (const Tensor& each : gradients) {
      shapes.emplace_back(each.sizes().begin(), each.sizes().end());
      own.push_back(each * (group.rank() + 1.0));
    }
    const std::vector<NamedTensor> parameters = parameters_of(shapes, {dtype, kCPU});
    ReducerOptions options;
    options.communication_hook = f16_compress_hook();
    Reducer reducer(parameters, &group, options);
    step_with(reducer, parameters, own);
    if (group.rank() != 1) return;
    for (const Tensor& each : reducer.gradients()) found.push_back(numbers_of(each));
  });
  return found;
}

TEST(CommunicationHook, F16HasElevenBitsAtEveryScale) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    std::vector<Tensor> gradients;
    for (const double scale : {1.0, 3e30, 7e-30, 0.0}) {
      gradients.push_back(random_values(1, {40, 3}).to(dtype) * scale);
    }
    gradients.push_back(empty({0, 3}, {dtype, kCPU}));
    const auto found = f16_sums(gradients, dtype);
    ASSERT_EQ(found.size(), gradients.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const std::vector<double> one = numbers_of(gradients[i]);
      ASSERT_EQ(found[i].size(), one.size());
      for (size_t j = 0; j < one.size(); ++j) {
        EXPECT_NEAR(found[i][j], 6 * one[j], std::abs(6 * one[j]) * std::ldexp(1.0, -10));
      }
    }
  }
}

TEST(CommunicationHook, F16SumsOfManyRanksDoNotOverflow) {
  all_ranks(4, [](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of({{5}});
    Reducer reducer(parameters, &group, with_hook(f16_compress_hook()));
    for (const double value : {1.0, 65504.0, 1e-30, 3e37}) {
      step_with(reducer, parameters, {ones({5}) * value});
      const auto once = static_cast<double>(static_cast<float>(value));
      for (const double sum : numbers_of(reducer.gradients()[0])) {
        EXPECT_NEAR(sum / once, 4, 4e-3) << value;
      }
    }
  });
}

TEST(CommunicationHook, AfterOneThatFailedNoOtherIsCalled) {
  std::atomic<int> calls = 0;
  const CommunicationHook fails{"fails", [&](ProcessGroup&, const GradientBucket&) -> Tensor {
                                  ++calls;
                                  throw DataError("no luck");
                                }};
  all_ranks(2, [&](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group, with_hook(fails));
    EXPECT_ANY_THROW(step_with(reducer, parameters, random_gradients(group.rank())));
  });
  EXPECT_LE(calls, 2) << "of the first bucket, on each rank";
}

TEST(CommunicationHook, ItComputesWithAsManyThreadsAsTheThreadThatWantsTheSum) {
  all_ranks(2, [](ProcessGroup& group) {
    const int own = 3 + group.rank();
    set_num_threads(own);
    std::atomic<int> seen = 0;
    CommunicationHook hook = plain_sum();
    hook.call = [&seen, sum = hook.call](ProcessGroup& ranks, const GradientBucket& bucket) {
      seen = num_threads();
      return sum(ranks, bucket);
    };
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group, with_hook(hook));
    step_with(reducer, parameters, random_gradients(group.rank()));
    EXPECT_EQ(seen, own);
  });
}

TEST(CommunicationHook, ARunnerLetsGoOfABucketWhenItsSumIsThere) {
  all_ranks(2, [](ProcessGroup& group) {
    WatchedMemory memory(kCPU);
    HookRunner runner(plain_sum(), group, 1);
    Work work;
    {
      const Tensor values = memory.vector(4).fill_(1);
      work = runner.run(
          {.index = 0, .is_last = true, .values = values, .gradients = {{0, "p0", values}}});
    }
    work.wait();
    EXPECT_EQ(memory.freed(), 1);
  });
}

TEST(CommunicationHook, F16KeepsWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor bad = tensor_from<float>({1, -INFINITY, 2, NAN}, {4});
  const Tensor good = tensor_from<float>({1e6F, 1}, {2});
  const auto found = f16_sums({bad, good}, DType::kF32);
  EXPECT_EQ(found[0][0], 6);
  EXPECT_EQ(found[0][1], -infinity);
  EXPECT_TRUE(std::isnan(found[0][3]));
  EXPECT_NEAR(found[1][0], 6e6, 6e3);
}

TEST(CommunicationHook, CompressedGradientsTakeHalfTheBytes) {
  const auto sent = [](const CommunicationHook& hook) {
    uint64_t bytes = 0;
    all_ranks(2, [&](ProcessGroup& group) {
      const std::vector<NamedTensor> parameters = parameters_of(kShapes);
      Reducer reducer(parameters, &group, with_hook(hook));
      step_with(reducer, parameters, random_gradients(group.rank()));
      const uint64_t before = group.bytes_sent().value();
      step_with(reducer, parameters, random_gradients(group.rank()));
      if (group.rank() == 0) bytes = group.bytes_sent().value() - before;
    });
    return bytes;
  };
  const uint64_t plain = sent({});
  // Each gradient takes a cache line.
  EXPECT_EQ(plain, 3u * 64);
  EXPECT_EQ(sent(plain_sum()), plain);
  EXPECT_EQ(sent(bf16_compress_hook()), plain / 2);
  EXPECT_EQ(sent(f16_compress_hook()), plain / 2 + 3 * 8);
}

// --- what goes wrong -----------------------------------------------------------------------------

/// Errors of 3 ranks in steps with a hook whose call on rank 1 in the second step is `bad`.
std::vector<std::exception_ptr> errors_with(
    const std::function<Tensor(const GradientBucket&)>& bad) {
  return run_thread_ranks(3, [&](ProcessGroup& group) {
    CommunicationHook hook{"faulty", {}};
    hook.call = [&, steps = 0](ProcessGroup& ranks, const GradientBucket& bucket) mutable {
      const bool is_bad = ranks.rank() == 1 && steps == 1 && bucket.index == 1;
      if (bucket.is_last) ++steps;
      if (is_bad) return bad(bucket);
      ranks.all_reduce(bucket.values).wait();
      return bucket.values;
    };
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group, with_hook(hook));
    for (int step = 0; step < 3; ++step) {
      step_with(reducer, parameters, random_gradients(group.rank(), step));
    }
  });
}

template <class E>
void expect_reason(const std::vector<std::exception_ptr>& errors, const std::string& reason) {
  constexpr const char* kPlace = "communication hook \"faulty\", bucket 1 (p1)";
  ASSERT_TRUE(errors[0] && errors[1] && errors[2]);
  expect_error<E>([&] { std::rethrow_exception(errors[1]); }, "[reducer]", kPlace, reason);
  for (const size_t rank : {0, 2}) {
    expect_error<PeerLostError>([&] { std::rethrow_exception(errors[rank]); }, "rank 1 failed",
                                kPlace, reason);
  }
}

TEST(CommunicationHook, WhatItThrowsOnOneRankEndsAllWithThatReason) {
  expect_reason<DistError>(
      errors_with([](const GradientBucket&) -> Tensor { throw std::runtime_error("no more ink"); }),
      "no more ink");
  expect_reason<DistError>(errors_with([](const GradientBucket&) -> Tensor { throw 7; }),
                           "something that is no std::exception");
  expect_reason<DistError>(errors_with([](const GradientBucket&) -> Tensor {
                             throw DistError("[send] to: expected a rank");
                           }),
                           "[send] to: expected a rank");
}

TEST(CommunicationHook, AnErrorOfLockstepKeepsItsType) {
  expect_reason<OutOfMemoryError>(errors_with([](const GradientBucket&) -> Tensor {
                                    throw OutOfMemoryError("[empty] none is left.");
                                  }),
                                  "[empty] none is left.");
}

TEST(CommunicationHook, AnotherShapeOrDtypeOrNothingIsRefused) {
  expect_reason<ShapeError>(
      errors_with([](const GradientBucket& bucket) { return bucket.gradients[0].values.clone(); }),
      "expected it to return float32[16] on cpu, as the bucket is, got float32[7] on cpu.");
  expect_reason<ShapeError>(errors_with([](const GradientBucket& bucket) {
                              return bucket.values.view({4, 4});
                            }),
                            "got float32[4, 4] on cpu");
  expect_reason<DTypeError>(
      errors_with([](const GradientBucket& bucket) { return bucket.values.to(DType::kBF16); }),
      "got bfloat16[16] on cpu");
  expect_reason<DeviceError>(errors_with([](const GradientBucket& bucket) {
                               return bucket.values.to(Device(DeviceType::kHost, 0));
                             }),
                             "got float32[16] on host:0");
  expect_reason<ShapeError>(errors_with([](const GradientBucket&) { return Tensor(); }),
                            "got no tensor");
}

TEST(CommunicationHook, AStepThatIsGivenUpEndsTheHookThatWaitsForOtherRanks) {
  std::latch gone(1);
  const auto errors = run_thread_ranks(2, [&](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    auto reducer = std::make_unique<Reducer>(parameters, &group, with_hook(plain_sum()));
    step_with(*reducer, parameters, random_gradients(group.rank()));
    if (group.rank() == 0) {
      gone.wait();
      return step_with(*reducer, parameters, random_gradients(group.rank()));
    }
    reducer->begin_step();
    reducer->begin_leaf();
    reducer->expect_last_backward();
    loss_with(parameters, random_gradients(group.rank())).backward();
    reducer.reset();  // its buckets still wait for rank 0
    gone.count_down();
  });
  EXPECT_EQ(text_of(errors[1]), "nothing");
  EXPECT_THAT(text_of(errors[0]), HasSubstr("the step was given up before its gradients"));
}

TEST(CommunicationHook, RanksWithOtherHooksAreRefused) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    Reducer reducer(parameters_of(kShapes), &group,
                    with_hook(group.rank() == 0 ? bf16_compress_hook() : f16_compress_hook()));
  });
  for (const std::exception_ptr& error : errors) {
    expect_error<CommonMismatchError>([&] { std::rethrow_exception(error); },
                                      "expected \"communication hook bf16_compress\", got "
                                      "\"communication hook f16_compress\"");
  }
}

TEST(CommunicationHook, ATreeOfLeavesRefusesIt) {
  all_ranks(2, [](ProcessGroup& group) {
    ReducerOptions options = with_hook(bf16_compress_hook());
    options.tree_leaves = 2;
    expect_error<DistError>([&] { Reducer reducer(parameters_of(kShapes), &group, options); },
                            "[reducer] communication_hook", "bf16_compress", "number of ranks");
  });
}

// --- together with the rest ----------------------------------------------------------------------

TEST(CommunicationHook, ARankAloneIsNotAsked) {
  all_ranks(1, [](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group,
                    with_hook({"none", [](ProcessGroup&, const GradientBucket&) -> Tensor {
                                 throw std::runtime_error("was called");
                               }}));
    step_with(reducer, parameters, random_gradients(0));
  });
}

TEST(CommunicationHook, OnADeviceWithStreamsTheBitsAreThoseOfTheCpu) {
  stream_sanitizer::enable(true);
  const Device host(DeviceType::kHost, 0);
  for (const CommunicationHook& hook : {bf16_compress_hook(), f16_compress_hook(), plain_sum()}) {
    ReducerOptions options = with_hook(hook);
    options.average = true;
    EXPECT_EQ(results(options, 3, 3, host), results(options, 3, 3)) << hook.name;
  }
  EXPECT_EQ(stream_sanitizer::reports(), 0);
  stream_sanitizer::enable(false);
}

TEST(CommunicationHook, LeavesOfARankAreSummedBeforeIt) {
  all_ranks(2, [&](ProcessGroup& group) {
    ReducerOptions options = with_hook(plain_sum());
    options.leaves = {0, 3};
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group, options);
    for (int step = 0; step < 2; ++step) {
      reducer.begin_step();
      for (int leaf = 0; leaf < 3; ++leaf) {
        reducer.begin_leaf();
        if (leaf == 2) reducer.expect_last_backward();
        loss_with(parameters, {full({3, 5}, leaf + 1.0), ones({7}), ones({2, 2, 3})}).backward();
      }
      reducer.finish();
      EXPECT_EQ(numbers_of(reducer.gradients()[0]), std::vector<double>(15, 12));
      EXPECT_EQ(numbers_of(reducer.gradients()[1]), std::vector<double>(7, 6));
    }
  });
}

TEST(CommunicationHook, UnusedParametersStayWithoutAGradient) {
  all_ranks(2, [](ProcessGroup& group) {
    ReducerOptions options = with_hook(bf16_compress_hook());
    options.find_unused_parameters = true;
    const std::vector<NamedTensor> parameters = parameters_of(kShapes);
    Reducer reducer(parameters, &group, options);
    for (int step = 0; step < 3; ++step) {
      // Only rank 1 uses p1; no rank uses p2.
      std::vector<Tensor> gradients{ones({3, 5})};
      if (group.rank() == 1) gradients.push_back(ones({7}));
      step_with(reducer, parameters, gradients);
      EXPECT_EQ(numbers_of(parameters[0].tensor.grad()), std::vector<double>(15, 2));
      EXPECT_EQ(numbers_of(parameters[1].tensor.grad()), std::vector<double>(7, 1));
      EXPECT_FALSE(parameters[2].tensor.grad().defined());
    }
  });
}

struct Module {
  std::vector<NamedTensor> parameters = parameters_of(kShapes);
  std::vector<NamedTensor> named_parameters() const { return parameters; }
  std::vector<NamedTensor> named_buffers() const { return {}; }
};

TEST(CommunicationHook, DdpAveragesWhatItReturns) {
  all_ranks(2, [](ProcessGroup& group) {
    const Module module;
    Ddp ddp(module, group, {.communication_hook = bf16_compress_hook()});
    for (int step = 0; step < 3; ++step) {
      const double own = group.rank() == 0 ? 1 : 3;
      const std::vector<Tensor> gradients{full({3, 5}, own), full({7}, own), full({2, 2, 3}, own)};
      {
        const auto no_sync = ddp.no_sync();
        loss_with(module.parameters, gradients).backward();
      }
      loss_with(module.parameters, gradients).backward();
      EXPECT_EQ(numbers_of(module.parameters[1].tensor.grad()), std::vector<double>(7, 4));
      ddp.zero_grad();
    }
  });
}

}  // namespace
}  // namespace lockstep::dist
