// What a Reducer does beside the sums: streams, the order of buckets, times, and its end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/meta.h"
#include "core/ops/reduce/reduce.h"
#include "dist/ddp/ddp.h"
#include "tests/dist/ddp/known_gradients.h"
#include "tests/dist/ddp/layered_net.h"
#include "tests/dist/ddp/small_model.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::Each;
using testing::ElementsAre;
using Clock = std::chrono::steady_clock;

constexpr Device kOnHost{DeviceType::kHost, 0};

TEST(ReducerDetails, ABucketIsSentAfterTheWorkOfAllStreamsThatMadeItsGradients) {
  for (const size_t beside : {0, 1}) {
    all_ranks(2, [&](ProcessGroup& group) {
      const OwnCurrentStream own(kOnHost);
      const OwnedStream side(kOnHost);
      std::vector<NamedTensor> parameters;
      for (const Stream stream : {current_stream(kOnHost), side.get()}) {
        const StreamGuard there(stream);  // where its gradients are added up
        parameters.push_back(parameters_of({{1000}}, {DType::kF32, kOnHost})[0]);
      }
      if (beside == 0) std::swap(parameters[0], parameters[1]);
      ReducerOptions options;
      options.buckets = {.first_bytes = 1 << 20, .bytes = 1 << 20};
      Reducer reducer(parameters, &group, options);
      for (int step = 0; step < 3; ++step) {
        side.get().wait_stream(current_stream(kOnHost));
        reducer.begin_step();
        reducer.begin_leaf();
        reducer.expect_last_backward();
        std::atomic<bool> open = false;
        side.get().add_callback([&] { open.wait(false); });
        std::thread opens([&] {  // when a sum that does not wait would be there
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          open = true;
          open.notify_all();
        });
        const float scale = static_cast<float>(step) + 1;
        Tensor loss;
        for (const size_t use : {0, 1, 0, 1}) {  // each sum of two is made on its own stream
          const Tensor part = sum(parameters[use].tensor * scale);
          loss = loss.defined() ? loss + part : part;
        }
        loss.backward();
        reducer.finish();
        opens.join();
        for (const Tensor& each : reducer.gradients()) {
          EXPECT_THAT(numbers_of(each), Each(4 * scale)) << step;
        }
      }
    });
  }
}

TEST(ReducerDetails, ParametersWithoutAGradientComeLast) {
  all_ranks(2, [](ProcessGroup& group) {
    SmallModel model;
    model.has_extra = true;
    ReducerOptions options;
    options.buckets = {.first_bytes = 1, .bytes = 1};
    options.find_unused_parameters = true;
    Reducer reducer(model.named_parameters(), &group, options);
    for (int step = 0; step < 2; ++step) {
      reducer.begin_step();
      reducer.begin_leaf();
      reducer.expect_last_backward();
      model.loss(0).backward();
      reducer.finish();
    }
    std::vector<uint32_t> order;
    for (const Bucket& bucket : reducer.plan().buckets) order.push_back(bucket.parameters[0]);
    EXPECT_THAT(order, ElementsAre(1, 0, 2));
  });
}

TEST(ReducerDetails, WhatOnReducedTakesIsNoTimeThatTheSumsWereWaitedFor) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net(kCPU, /*layers=*/2);
    Clock::duration slept{};
    ReducerOptions options;
    options.on_reduced = [&](std::span<const uint32_t>, const std::vector<Tensor>&) {
      const Clock::time_point begin = Clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      slept += Clock::now() - begin;
    };
    Reducer reducer(net.parameters, &group, options);
    reducer.begin_step();
    reducer.begin_leaf();
    const Tensor loss = net.loss(group.rank());
    reducer.expect_last_backward();
    loss.backward();
    const Clock::time_point begin = Clock::now();
    reducer.finish();
    const auto seconds = [](Clock::duration time) {
      return std::chrono::duration<double>(time).count();
    };
    EXPECT_GE(slept, std::chrono::milliseconds(50));
    EXPECT_LE(reducer.times().exposed_seconds() + seconds(slept), seconds(Clock::now() - begin));
  });
}

TEST(ReducerDetails, AfterItGradientsAreNotWrittenToItsMemory) {
  const LayeredNet net(kCPU, /*layers=*/2);
  const auto destination = [&](size_t i) {
    return gradient_edge(net.parameters[i].tensor).node->destination();
  };
  {
    Reducer reducer(net.parameters, nullptr);
    run_step(reducer, net, {0, 1});
    reducer.begin_step();
    reducer.begin_leaf();
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(destination(i).defined());
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_FALSE(destination(i).defined());
}

TEST(ReducerDetails, AfterDdpABackwardIsOfThisRankAlone) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    std::optional<Ddp> ddp(std::in_place, model, group);
    model.loss(0).backward();
    ddp.reset();
    for (const NamedTensor& each : model.named_parameters()) each.tensor.set_grad({});
    model.loss(static_cast<uint32_t>(group.rank())).backward();
    const SmallModel alone;
    alone.loss(static_cast<uint32_t>(group.rank())).backward();
    EXPECT_EQ(numbers(model.first.grad()), numbers(alone.first.grad()));
  });
}

/// A group whose sums have no order that is always the same, as NCCL's.
class WithoutAnOrder final : public ProcessGroup {
 public:
  explicit WithoutAnOrder(ProcessGroup& base)
      : ProcessGroup(base.rank(), base.size(), base.name()), base_(base) {}
  const char* backend() const noexcept override { return "no order"; }
  bool adds_in_one_order() const noexcept override { return false; }
  std::unique_ptr<ProcessGroup> subgroup(std::vector<int> ranks, std::string name) override {
    return base_.subgroup(std::move(ranks), std::move(name));
  }
  std::optional<uint64_t> bytes_sent() const noexcept override { return base_.bytes_sent(); }
  void abort(const std::string& reason) noexcept override { base_.abort(reason); }

 private:
  struct Starter : ProcessGroup {
    static Work pass_on(ProcessGroup& group, Launch launch) {
      return (group.*&Starter::start)(std::move(launch));
    }
  };
  Work start(Launch launch) override { return Starter::pass_on(base_, std::move(launch)); }

  ProcessGroup& base_;
};

TEST(ReducerDetails, SizesAreNotChosenWhereBitsOrAHookWouldDependOnThem) {
  all_ranks(2, [](ProcessGroup& group) {
    const LayeredNet net(kCPU, /*layers=*/2);
    const auto is_chosen = [&](ProcessGroup& over, const ReducerOptions& options) {
      Reducer reducer(net.parameters, &over, options);
      for (int step = 0; step < 5; ++step) run_step(reducer, net, {0, 1});
      return reducer.choice().has_value();
    };
    ReducerOptions options;
    EXPECT_TRUE(is_chosen(group, options));
    WithoutAnOrder other(group);
    EXPECT_FALSE(is_chosen(other, options));
    options.communication_hook = {"sum", [](ProcessGroup& ranks, const GradientBucket& bucket) {
                                    ranks.all_reduce(bucket.values).wait();
                                    return bucket.values;
                                  }};
    EXPECT_FALSE(is_chosen(group, options));
  });
}

}  // namespace
}  // namespace lockstep::dist
