// Ddp with static_graph: every step uses the same parameters as the first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dist/ddp/ddp.h"
#include "dist/group/communicator.h"
#include "dist/group/thread_control.h"
#include "dist/group/transport_group.h"
#include "dist/transport/thread_transport.h"
#include "tests/dist/ddp/recomputed_product.h"
#include "tests/dist/ddp/small_model.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::HasSubstr;

/// Options with one bucket per parameter.
DdpOptions static_graph(bool is_static = true) {
  DdpOptions options;
  options.buckets = {.first_bytes = 1, .bytes = 1};
  options.static_graph = is_static;
  options.find_unused_parameters = true;
  return options;
}

/// A model in which odd samples use one more parameter.
SmallModel with_extra() {
  SmallModel model;
  model.has_extra = true;
  return model;
}

/// all_ranks with access to the recorder that counts each rank's operations.
void recorded_ranks(int size, const std::function<void(ProcessGroup&, FlightRecorder&)>& body) {
  ThreadJob job(size);
  std::vector<std::unique_ptr<Transport>> transports = thread_transports(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    const auto connections = std::make_shared<Connections>(
        Connections{std::move(transports[static_cast<size_t>(rank)]), job.control(rank), nullptr});
    threads.emplace_back([&body, connections] {
      const auto communicator = std::make_shared<Communicator>(
          [connections] { return std::move(*connections); }, Communicator::Options{});
      const auto group = transport_group(communicator, "thread");
      try {
        body(*group, communicator->recorder());
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StaticGraph, UnusedParametersCostNoOperationAfterTheFirstStep) {
  for (const bool is_static : {true, false}) {
    recorded_ranks(2, [&](ProcessGroup& group, FlightRecorder& recorder) {
      const SmallModel model = with_extra();
      DdpOptions options = static_graph(is_static);
      options.broadcast_buffers = false;
      Ddp ddp(model, group, options);
      for (int step = 0; step < 4; ++step) {
        const uint64_t before = recorder.recorded();
        ddp.zero_grad();
        model.loss(0).backward();
        EXPECT_FALSE(model.extra.grad().defined());
        // Three buckets, the set of used parameters, and in the first step their order.
        const uint64_t first = step == 0 ? 1 : 0, use = is_static && step > 0 ? 0 : 1;
        EXPECT_EQ(recorder.recorded() - before, 3 + use + first) << step;
      }
    });
  }
}

TEST(StaticGraph, BucketsDoNotWaitForWhatDoesNotCome) {
  for (const bool is_static : {true, false}) {
    all_ranks(2, [&](ProcessGroup& group) {
      const SmallModel model = with_extra();
      Ddp ddp(model, group, static_graph(is_static));
      // Rank 1 does not use `extra`, whose gradient comes first on rank 0.
      const auto sample = static_cast<uint32_t>(1 - group.rank());
      model.loss(sample).backward();
      ddp.zero_grad();
      BucketTimes::TimePoint last;
      register_hook(model.first, [&](const Tensor&) {
        last = std::chrono::steady_clock::now();
        return Tensor();
      });
      model.loss(sample).backward();
      ASSERT_EQ(ddp.reducer().plan().buckets[0].parameters.at(0), 2u);
      const bool during = ddp.reducer().times().buckets()[1].launched < last;
      EXPECT_EQ(during, is_static || group.rank() == 0);
      const SmallModel alone = with_extra();
      (alone.loss(0) + alone.loss(1)).backward();
      const std::vector<float> expected = numbers(alone.extra.grad());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_FLOAT_EQ(2 * numbers(model.extra.grad())[i], expected[i]);
      }
    });
  }
}

/// Error of rank 1 when its second step has these samples, after a first step of sample `first`.
std::string second_step(uint32_t first, const std::vector<uint32_t>& samples) {
  const auto errors = run_thread_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model = with_extra();
    Ddp ddp(model, group, static_graph());
    model.loss(first).backward();
    ddp.zero_grad();
    if (group.rank() == 0) return model.loss(first).backward();
    std::vector<Tensor> losses;
    for (const uint32_t sample : samples) losses.push_back(model.loss(sample));
    backward(losses);
  });
  EXPECT_THAT(texts_of({errors[0]}), HasSubstr("rank 1"));
  return texts_of({errors[1]});
}

TEST(StaticGraph, ASumThatHasComeDuringBackwardStaysWhereTheParameterIsNotUsed) {
  all_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model = with_extra();
    Ddp ddp(model, group, static_graph());
    // Rank 1 does not use `extra`, whose bucket is the first.
    const auto sample = static_cast<uint32_t>(1 - group.rank());
    model.loss(sample).backward();
    ddp.zero_grad();
    register_hook(model.first, [&](const Tensor&) {
      const auto has_come = [&] {
        const BucketTimes extra = ddp.reducer().times().buckets()[0];
        return extra.done > extra.launched;
      };
      while (!has_come()) std::this_thread::yield();
      return Tensor();
    });
    model.loss(sample).backward();
    const SmallModel alone = with_extra();
    (alone.loss(0) + alone.loss(1)).backward();
    const std::vector<float> expected = numbers(alone.extra.grad());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_FLOAT_EQ(2 * numbers(model.extra.grad())[i], expected[i]);
    }
  });
}

TEST(StaticGraph, AParameterThatIsLeftOutIsNamedInTheSameStep) {
  EXPECT_THAT(second_step(1, {0}),
              HasSubstr("[backward] static_graph: parameter extra [3, 3]: expected 1 gradients in "
                        "the last backward, as in the first step, got 0. Run the same graph"));
}

TEST(StaticGraph, AParameterThatIsNewIsNamedInTheSameStep) {
  EXPECT_THAT(second_step(0, {1}), HasSubstr("parameter extra"));
  EXPECT_THAT(second_step(0, {1, 0}), HasSubstr("leave static_graph out"));
}

TEST(StaticGraph, AParameterThatIsNewUnderNoSyncIsNamed) {
  const auto errors = run_thread_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model = with_extra();
    Ddp ddp(model, group, static_graph());
    model.loss(0).backward();
    ddp.zero_grad();
    {
      const auto no_sync = ddp.no_sync();
      model.loss(1).backward();
    }
    model.loss(0).backward();
  });
  EXPECT_THAT(texts_of(errors), HasSubstr("parameter extra [3, 3]: expected no gradient, as on all "
                                          "ranks in the first step, got one."));
}

TEST(StaticGraph, WithoutUnusedParametersEachMustHaveOne) {
  const auto errors = run_thread_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model = with_extra();
    DdpOptions options = static_graph();
    options.find_unused_parameters = false;
    Ddp ddp(model, group, options);
    model.loss(0).backward();
  });
  EXPECT_THAT(texts_of(errors), HasSubstr("parameter extra [3, 3] received no gradient"));
}

/// Two products with the same weight, each recomputed in backward.
Tensor recomputed_loss(const SmallModel& model, uint32_t sample) {
  Tensor x = tanh(mm(random_matrix(sample + 50, 2, 6), model.first));
  x = tanh(mm(RecomputedProduct::apply(x, model.second), model.second.detach().t()));
  return sum(RecomputedProduct::apply(x, model.second));
}

TEST(StaticGraph, SeveralGradientsOfOneBackwardAreCounted) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model, plain;
    Ddp ddp(model, group, static_graph());
    Ddp other(plain, group);
    for (uint32_t step = 0; step < 3; ++step) {
      const auto sample = 2 * step + static_cast<uint32_t>(group.rank());
      for (const bool last : {false, true}) {
        std::optional<Ddp::NoSync> here, there;
        if (!last) {
          here.emplace(ddp);
          there.emplace(other);
        }
        recomputed_loss(model, sample).backward();
        recomputed_loss(plain, sample).backward();
      }
      EXPECT_EQ(numbers(ddp.gradients()[0]), numbers(other.gradients()[0]));
      EXPECT_EQ(numbers(ddp.gradients()[1]), numbers(other.gradients()[1]));
      ddp.zero_grad();
      other.zero_grad();
    }
  });
}

TEST(StaticGraph, WithoutItAParameterMayHaveTwoGradientsInOneStepAndOneInTheNext) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, {.buckets = {.first_bytes = 1, .bytes = 1}});
    for (uint32_t step = 0; step < 4; ++step) {
      const auto loss_of = [&](const SmallModel& of, uint32_t rank) {
        return step % 2 == 0 ? recomputed_loss(of, 2 * step + rank) : of.loss(2 * step + rank);
      };
      loss_of(model, static_cast<uint32_t>(group.rank())).backward();
      const SmallModel alone;
      (loss_of(alone, 0) + loss_of(alone, 1)).backward();
      const std::vector<float> expected = numbers(alone.second.grad());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(2 * numbers(model.second.grad())[i], expected[i], 1e-6) << step;
      }
      ddp.zero_grad();
    }
  });
}

TEST(StaticGraph, AnotherNumberOfGradientsIsNamedWithBoth) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, static_graph());
    recomputed_loss(model, 0).backward();
    ddp.zero_grad();
    model.loss(0).backward();
  });
  EXPECT_THAT(texts_of(errors), HasSubstr("parameter second [8, 3]: expected 2 gradients in the "
                                          "last backward, as in the first step, got 1."));
}

TEST(StaticGraph, OneRankAloneIsHeldToItToo) {
  const auto errors = run_thread_ranks(1, [](ProcessGroup& group) {
    const SmallModel model = with_extra();
    Ddp ddp(model, group, static_graph());
    model.loss(0).backward();
    ddp.zero_grad();
    model.loss(1).backward();
  });
  EXPECT_THAT(texts_of(errors), HasSubstr("parameter extra [3, 3]: expected no gradient"));
}

}  // namespace
}  // namespace lockstep::dist
