// Sharded models whose units are unlike those of most tests: with frozen parameters, unused ones,
// in another order, or on ranks that were not started alike.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/autocast.h"
#include "core/base/error.h"
#include "core/memory/caching_allocator.h"
#include "core/tensor/stream.h"
#include "dist/fsdp/fully_shard.h"
#include "tests/core/expect_error.h"
#include "tests/dist/fsdp/small_net.h"
#include "tests/dist/group/communicator_ranks.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using NumberLists = std::vector<std::vector<float>>;

constexpr int64_t kUnitWidth = SmallNet::kWidth;

/// y = x W * s.
struct Scaled : HookedModule {
  explicit Scaled(std::string path, int64_t scales = kUnitWidth)
      : HookedModule(std::move(path)),
        scale(add_parameter("scale", random_tensor({scales}, 5))),
        weight(add_parameter("weight", random_tensor({kUnitWidth, kUnitWidth}, 6))) {}
  Tensor forward(const Tensor& x) const {
    return run_forward(
        [this](const Tensor& input) {
          return mm(input, weight) * (scale.numel() == kUnitWidth ? scale : sum(scale));
        },
        x);
  }

  Tensor scale;
  Tensor weight;
};

/// Two units between a weight before them and one after them.
struct TwoUnits : HookedModule {
  enum class Order { kBoth, kSwapped, kFirstAlone };

  explicit TwoUnits(int64_t scales = kUnitWidth, bool has_before = true)
      : HookedModule(""), a("a", scales), b("b", scales) {
    if (has_before) before = add_parameter("before", random_tensor({kUnitWidth}, 1));
    after = add_parameter("after", random_tensor({kUnitWidth}, 2));
    add_parameters_of(a);
    add_parameters_of(b);
  }
  std::unique_ptr<ShardedModel> shard(ProcessGroup& group, const ShardOptions& options = {}) {
    return fully_shard(*this, std::vector<HookedModule*>{&a, &b}, group, options);
  }
  Tensor loss(int sample, Order order = Order::kBoth) const {
    const Tensor x = random_tensor({1, kUnitWidth}, 100 + sample);
    return sum(run_forward(
        [&](const Tensor& input) {
          const Tensor y = before.defined() ? input * before : input;
          if (order == Order::kFirstAlone) return a.forward(y) * after;
          if (order == Order::kSwapped) return a.forward(b.forward(y)) * after;
          return b.forward(a.forward(y)) * after;
        },
        x));
  }

  Tensor before;
  Tensor after;
  Scaled a;
  Scaled b;
};

void begin_units(ShardedModel& sharded) {
  sharded.begin_step();
  sharded.begin_leaf();
}

void run_units(ShardedModel& sharded, const TwoUnits& net, int sample,
               TwoUnits::Order order = TwoUnits::Order::kBoth) {
  begin_units(sharded);
  net.loss(sample, order).backward();
  sharded.finish();
}

TEST(ShardingDetails, AnAverageOfReplicasIsOverAllTheirRanks) {
  std::vector<NumberLists> alone(4);
  for (int sample = 0; sample < 4; ++sample) {
    const TwoUnits net;
    net.loss(sample).backward();
    for (const Tensor& each : net.parameters()) {
      alone[static_cast<size_t>(sample)].push_back(values_of(each.grad()));
    }
  }
  all_ranks(4, [&](ProcessGroup& group) {
    TwoUnits net;
    const auto sharded = net.shard(
        group, {.strategy = ShardStrategy::kHybridShard, .shard_size = 2, .average = true});
    run_units(*sharded, net, group.rank());
    for (size_t i = 0; i < sharded->trained_count(); ++i) {
      const Tensor whole = sharded->collect_parts(i, sharded->gradients());
      if (group.rank() != 0) continue;
      const std::vector<float> got = values_of(whole);
      for (size_t k = 0; k < got.size(); ++k) {
        const float first = alone[0][i][k] + alone[1][i][k];
        ASSERT_EQ(got[k], (first + (alone[2][i][k] + alone[3][i][k])) / 4) << i << ", " << k;
      }
    }
  });
}

TEST(ShardingDetails, AFrozenParameterStaysUntilNothingNeedsIt) {
  std::vector<float> expected;
  {
    TwoUnits net;
    net.b.weight.set_requires_grad(false);
    net.loss(0).backward();
    expected = values_of(net.before.grad());
  }
  all_ranks(2, [&](ProcessGroup& group) {
    TwoUnits net;
    net.b.weight.set_requires_grad(false);
    const auto sharded = net.shard(group, {.average = true});
    begin_units(*sharded);
    // The gradient of the scale comes before that of what the frozen weight multiplies.
    net.loss(0).backward();
    for (const Tensor& each : {net.b.weight, net.a.weight, net.after}) {
      expect_error<DeviceError>([&] { (void)each.data(); }, "is not here");
    }
    sharded->finish();
    const Tensor whole = sharded->collect_parts(0, sharded->gradients());
    if (group.rank() == 0) {
      EXPECT_EQ(values_of(whole), expected);
    }
  });
}

TEST(ShardingDetails, AUnitThatNoForwardUsesIsAnErrorOfTheStep) {
  all_ranks(2, [](ProcessGroup& group) {
    TwoUnits net;
    const auto sharded = net.shard(group, {.accumulates = true});
    run_units(*sharded, net, 0);
    begin_units(*sharded);
    net.loss(1, TwoUnits::Order::kFirstAlone).backward();  // sums nothing yet
    expect_error<AutogradError>([&] { sharded->finish(); },
                                "[backward] parameter b.scale [64] received no gradient");
  });
}

TEST(ShardingDetails, AnOrderThatChangesIsFollowedFromTheNextForwardOn) {
  all_ranks(2, [](ProcessGroup& group) {
    TwoUnits net;
    const auto sharded = net.shard(group);
    run_units(*sharded, net, 0);
    for (int step = 1; step < 3; ++step) run_units(*sharded, net, step, TwoUnits::Order::kSwapped);
    ASSERT_EQ(sharded->gather_waits().size(), 3u);
    for (size_t unit : {1u, 2u}) {
      EXPECT_EQ(sharded->gather_waits()[unit].late_seconds, 0) << sharded->unit_name(unit);
    }
  });
}

TEST(ShardingDetails, TheRootIsGatheredOnceAStep) {
  const auto first = all_communicators(2, [](ProcessGroup& group, Communicator&) {
    // The root's gradient comes first in backward.
    TwoUnits net(kUnitWidth, /*has_before=*/false);
    const auto sharded = net.shard(group, {.prefetch_bytes = int64_t{1} << 30});
    for (int step = 0; step < 3; ++step) run_units(*sharded, net, step);
  });
  int gathers = 0;
  for (const FlightRecord& record : first->recorder().records()) {
    if (record.signature.kind == OpKind::kAllGather && record.label == std::string("root unit")) {
      ++gathers;
    }
  }
  EXPECT_EQ(gathers, 3);
}

TEST(ShardingDetails, RanksThatSumDifferentlyAreRefusedNamingWhat) {
  struct Case {
    ShardOptions usual;
    ShardOptions other;
    std::string expected;
    std::string got;
  };
  const ShardOptions hybrid{.strategy = ShardStrategy::kHybridShard, .shard_size = 2};
  ShardOptions larger = hybrid;
  larger.shard_size = 4;
  const std::vector<Case> cases = {
      {{}, {.average = true}, "average false", "average true"},
      {{}, {.reduce_dtype = DType::kBF16}, "sent in the parameters' dtype", "sent in bfloat16"},
      {{},
       {.gather_dtype = DType::kBF16},
       "gathered in the parameters' dtype",
       "gathered in bfloat16"},
      {hybrid, larger, "ranks of a shard 2", "ranks of a shard 4"}};
  for (const Case& each : cases) {
    const auto errors = run_thread_ranks(4, [&](ProcessGroup& group) {
      TwoUnits net;
      (void)net.shard(group, group.rank() == 3 ? each.other : each.usual);
    });
    for (const std::exception_ptr& error : errors) {
      EXPECT_THAT(text_of(error),
                  AllOf(HasSubstr("[fully_shard] rank 3 has another model than rank 0"),
                        HasSubstr("expected \"" + each.expected), HasSubstr(each.got)));
    }
  }
}

// --- gathered as casts ---------------------------------------------------------------------------

class ShardingCasts : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer does not see what oneDNN's cache of bf16 products locks";
#endif
  }
};

/// This rank's gradients after a step under autocast.
NumberLists gradients_with(ProcessGroup& group, int64_t scales, std::optional<DType> gather_dtype) {
  const AutocastGuard region(DeviceType::kCPU);
  TwoUnits net(scales);
  const auto sharded = net.shard(group, {.gather_dtype = gather_dtype});
  run_units(*sharded, net, 0);
  NumberLists gradients;
  for (const Tensor& each : sharded->gradients()) gradients.push_back(values_of(each));
  return gradients;
}

TEST_F(ShardingCasts, UnitsWhoseVectorsAreMoreThanAPartAreGatheredAsTheyAre) {
  all_ranks(4, [](ProcessGroup& group) {
    // Five blocks of a vector and one of a matrix: two for each rank.
    const int64_t scales = 5 * kUnitWidth * kUnitWidth;
    EXPECT_EQ(gradients_with(group, scales, DType::kBF16), gradients_with(group, scales, {}));
  });
}

TEST_F(ShardingCasts, AllParametersAreThereWhenTheyAreSummonedBehindAForward) {
  all_ranks(2, [](ProcessGroup& group) {
    const AutocastGuard region(DeviceType::kCPU);
    TwoUnits net;
    const auto sharded =
        net.shard(group, {.strategy = ShardStrategy::kShardGradOp, .gather_dtype = DType::kBF16});
    sharded->begin_step();
    const Tensor loss = net.loss(0);  // whose units stay gathered, as casts
    sharded->summon_full_parameters();
    EXPECT_EQ(values_of(net.a.weight), values_of(TwoUnits().a.weight));
  });
}

TEST_F(ShardingCasts, PartsOnTheHostAreCastAnewAfterEachUpdate) {
  constexpr Device kWithStreams{DeviceType::kHost, 0};
  const auto trained = [&](bool offloads) {
    NumberLists result;
    all_ranks(2, [&](ProcessGroup& group) {
      const OwnedStream stream(kWithStreams);
      const StreamGuard guard(stream.get());
      const AutocastGuard region(DeviceType::kHost);
      SmallNet net(2, kWithStreams);
      const auto sharded =
          fully_shard(net, group, {.gather_dtype = DType::kBF16, .cpu_offload = offloads});
      for (int step = 0; step < 3; ++step) {
        sharded->begin_step();
        sharded->begin_leaf();
        net.loss(2 * step + group.rank()).backward();
        sharded->finish();
        const NoGradGuard no_grad;
        for (size_t i = 0; i < sharded->parameters().size(); ++i) {
          sub_(sharded->parameters()[i].tensor, sharded->gradients()[i], 0.5);
        }
      }
      if (group.rank() != 0) return;
      for (const Tensor& each : sharded->gradients()) result.push_back(values_of(each));
    });
    return result;
  };
  EXPECT_EQ(trained(true), trained(false));
}

TEST(ShardingDetails, CopiesFromTheHostWaitForTheWorkThatStillReadsTheMemory) {
  constexpr Device kWithStreams{DeviceType::kHost, 0};
  all_ranks(2, [&](ProcessGroup& group) {
    const OwnedStream stream(kWithStreams);
    const StreamGuard guard(stream.get());
    const SmallNet net(2, kWithStreams);
    const auto sharded = fully_shard(net, group, {.cpu_offload = true});
    const Tensor x = random_tensor({1, kUnitWidth}, 100).to(kWithStreams);
    caching_allocator(kWithStreams).empty_cache();
    std::vector<Tensor> kept;
    std::vector<Tensor> freed;
    for (int64_t i = 0; i < 32; ++i) {
      const int64_t elements = 1024 + 256 * i;  // a unit has a little more than 4096
      kept.push_back(empty({elements}, {DType::kF32, kWithStreams}));
      freed.push_back(full({elements}, 1000, {DType::kF32, kWithStreams}));
    }
    std::atomic<bool> open = false;
    stream.get().add_callback([&] { open.wait(false); });
    for (size_t i = 0; i < kept.size(); ++i) kept[i].copy_(freed[i]);
    freed.clear();  // their memory is that of the stream's next tensors

    std::thread opens([&] {  // when copies that do not wait would be done
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      open = true;
      open.notify_all();
    });
    sharded->begin_step();
    sharded->begin_leaf();
    sum(net.forward(x)).backward();
    sharded->finish();
    opens.join();
    for (const Tensor& each : kept) {
      EXPECT_EQ(values_of(each), std::vector<float>(static_cast<size_t>(each.numel()), 1000));
    }
  });
}

}  // namespace
}  // namespace lockstep::dist
