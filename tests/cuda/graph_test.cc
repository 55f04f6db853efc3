#include "core/cuda/graph.h"

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "core/device/active_capture.h"
#include "core/device/replay_listener.h"
#include "core/device/stream_sanitizer.h"
#include "core/dispatch/call_op.h"
#include "core/memory/caching_allocator.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/plugin/plugin.h"
#include "core/tensor/event.h"
#include "core/tensor/generator.h"
#include "core/tensor/random_state_guard.h"
#include "tests/conformance/elements.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/gpu.h"
#include "tests/plugins/built_plugin.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::Pointwise;

Tensor of(double value, int64_t count = 64) { return full({count}, value, {DType::kF32, kGpu}); }

TEST(CudaGraph, ReplaysComputeWithWhatTheInputsHoldThen) {
  const Tensor in = of(1);
  Tensor out;
  CudaGraph graph(kGpu);
  graph.capture([&] { out = exp(in * 2) + in; });
  EXPECT_TRUE(graph.is_captured());
  for (const int seed : {1, 2}) {
    manual_seed(static_cast<uint64_t>(seed));
    const Tensor values = randn({64});
    in.copy_(values);
    graph.replay();
    EXPECT_THAT(floats_of(out),
                Pointwise(::testing::FloatNear(1e-4f), floats_of(exp(values * 2) + values)));
  }
}

TEST(CudaGraph, WhatIsChangedInPlaceIsChangedByEachReplay) {
  const Tensor count = of(0);
  const Tensor one = of(1);
  CudaGraph graph(kGpu);
  graph.capture([&] { count.add_(one); });
  EXPECT_THAT(floats_of(count), Each(0.0f)) << "nothing runs before replay";
  for (int i = 0; i < 3; ++i) graph.replay();
  EXPECT_THAT(floats_of(count), Each(3.0f));
}

TEST(CudaGraph, TellsListenersOfWhoIsInItOfEachReplay) {
  struct Listener final : ReplayListener {
    explicit Listener(std::vector<std::string>& to) : told(to) {}
    void before_replay(const Stream&) override {
      if (told.size() == 4) throw DeviceError("no more");
      told.emplace_back("before");
    }
    void after_replay(const Stream&) override { told.emplace_back("after"); }
    std::vector<std::string>& told;
  };
  std::vector<std::string> told;
  const Tensor count = of(0), one = of(1);
  CudaGraph graph(kGpu);
  const auto capture = [&](bool fails) {
    graph.capture([&] {
      for (int i = 0; i < 2; ++i) {
        active_capture()->listeners->of(&told, [&]() -> std::unique_ptr<ReplayListener> {
          return std::make_unique<Listener>(told);
        });
      }
      if (fails) throw DeviceError("not this one");
      count.add_(one);
    });
  };
  EXPECT_THROW(capture(true), DeviceError);
  capture(false);
  EXPECT_TRUE(told.empty());
  for (int i = 0; i < 2; ++i) graph.replay();
  EXPECT_EQ(told, (std::vector<std::string>{"before", "after", "before", "after"}));
  EXPECT_THROW(graph.replay(), DeviceError);
  EXPECT_THAT(floats_of(count), Each(2.0f)) << "an error keeps a replay from being queued";
}

TEST(CudaGraph, RecordsABackwardWhole) {
  const Tensor w = of(3).set_requires_grad();
  const Tensor in = of(1);
  const Tensor seed = of(1);
  CudaGraph graph(kGpu);
  graph.capture([&] { (w * w * in).backward(seed); });
  // The backward thread allocates the gradient, which must come from the graph's pool too.
  EXPECT_GE(caching_allocator(kGpu).live_blocks(graph.pool()), 1);
  in.fill_(5);
  w.detach().fill_(2);
  w.grad().zero_();
  graph.replay();
  EXPECT_THAT(floats_of(w.grad()), Each(20.0f));
}

TEST(CudaGraph, ReplaysDrawTheRandomNumbersThatCallsWouldDrawThen) {
  const Tensor in = of(1, 1000);
  Tensor kept, numbers;
  const auto work = [&] {
    kept = std::get<0>(native_dropout(in, 0.5, true));
    numbers = kept + rand({1000}, {DType::kF32, kGpu});
  };
  manual_seed(5);
  CudaGraph graph(kGpu);
  graph.capture(work);
  EXPECT_EQ(default_generator().state(), (RandomKey{.seed = 5})) << "a capture draws nothing";
  std::vector<std::vector<float>> replayed;
  const auto in_three_places = [](const std::function<void()>& body) {
    manual_seed(7);
    default_generator().set_position(3, 1);
    body();
    body();
    manual_seed(8);
    body();
  };
  in_three_places([&] {
    graph.replay();
    replayed.push_back(floats_of(numbers));
  });
  const RandomKey behind = default_generator().state();
  std::vector<std::vector<float>> called;
  in_three_places([&] {
    work();
    called.push_back(floats_of(numbers));
  });
  EXPECT_EQ(replayed, called);
  EXPECT_EQ(default_generator().state(), behind);
  EXPECT_NE(replayed[0], replayed[1]) << "masks of two replays differ";
}

TEST(CudaGraph, QueuedReplaysEachHaveTheirRandomNumbers) {
  Tensor numbers;
  CudaGraph graph(kGpu);
  graph.capture([&] { numbers = rand({8}, {DType::kF32, kGpu}); });
  constexpr int kReplays = 150;  // more than positions that are kept on their way
  const Tensor sums = of(0, 8), want = of(0, 8);
  manual_seed(3);
  for (int i = 0; i < kReplays; ++i) {
    graph.replay();
    sums.add_(numbers);
  }
  manual_seed(3);
  for (int i = 0; i < kReplays; ++i) want.add_(rand({8}, {DType::kF32, kGpu}));
  EXPECT_EQ(floats_of(sums), floats_of(want));
}

TEST(CudaGraph, RecomputedMasksAreThoseOfTheForwardPass) {
  const Tensor in = of(1, 256).set_requires_grad();
  Tensor out;
  CudaGraph graph(kGpu);
  manual_seed(1);
  graph.capture([&] {
    out = checkpoint([](const Tensor& t) { return dropout(t * 2, 0.5, true); }, in);
    out.sum().backward();
  });
  for (int i = 0; i < 2; ++i) {
    graph.replay();
    EXPECT_EQ(floats_of(in.grad()), floats_of(out)) << "an element's gradient is its factor";
  }
}

TEST(CudaGraph, RecomputesWhatWasDrawnBeforeTheCapture) {
  const Tensor in = of(1, 256).set_requires_grad();
  manual_seed(1);
  const Tensor out = checkpoint([](const Tensor& t) { return dropout(t * 2, 0.5, true); }, in);
  CudaGraph graph(kGpu);
  graph.capture([&] { out.backward(of(1, 256)); });
  rand({8});
  graph.replay();
  EXPECT_EQ(floats_of(in.grad()), floats_of(out));
}

TEST(CudaGraph, DrawsBehindAGuardOfTheGeneratorToo) {
  Tensor numbers;
  CudaGraph graph(kGpu);
  manual_seed(4);
  graph.capture([&] {
    const RandomStateGuard guard;
    numbers = rand({8}, {DType::kF32, kGpu});
  });
  manual_seed(6);
  graph.replay();
  const std::vector<float> replayed = floats_of(numbers);
  manual_seed(6);
  EXPECT_EQ(replayed, floats_of(rand({8}, {DType::kF32, kGpu})));
}

TEST(CudaGraph, NumbersOfAnotherGeneratorAreThoseOfTheCapture) {
  Generator own(9);
  const Tensor numbers = of(0, 16);
  CudaGraph graph(kGpu);
  graph.capture([&] { uniform_(numbers, 0, 1, &own); });
  graph.replay();
  const std::vector<float> first = floats_of(numbers);
  graph.replay();
  EXPECT_EQ(floats_of(numbers), first);
}

TEST(CudaGraph, ItsMemoryServesNobodyElseWhileItLives) {
  CachingAllocator& memory = caching_allocator(kGpu);
  const Tensor in = of(1, 1 << 20);
  synchronize(kGpu);
  memory.empty_cache();
  const int64_t reserved = memory.stats().reserved;
  {
    Tensor out;
    const void* between = nullptr;
    CudaGraph graph(kGpu);
    graph.capture([&] {
      const Tensor more = in + 1;
      between = more.data();
      out = more * 2;
    });
    std::vector<Tensor> others;
    for (int i = 0; i < 16; ++i) {
      others.push_back(of(777, 1 << 20));
      EXPECT_NE(others.back().data(), between);
    }
    memory.empty_cache();
    graph.replay();
    EXPECT_THAT(floats_of(out), Each(4.0f));
    for (const Tensor& other : others) EXPECT_EQ(floats_of(other)[0], 777);
  }
  synchronize(kGpu);
  memory.empty_cache();
  EXPECT_EQ(memory.stats().reserved, reserved) << "the pool went with the graph";
}

TEST(CudaGraph, ResultsOutliveTheGraph) {
  Tensor out;
  {
    const Tensor in = of(2);
    CudaGraph graph(kGpu);
    graph.capture([&] { out = in * in; });
    graph.replay();
  }
  const Tensor other = of(777);
  EXPECT_THAT(floats_of(out), Each(4.0f));
}

TEST(CudaGraph, WhatWouldWaitForTheDeviceIsRefusedByName) {
  const Tensor in = of(1, 1);
  const Tensor one = of(1, 1);
  const Tensor on_cpu = full({1}, 1);
  Event event;
  event.record(current_stream(kGpu));
  CudaGraph graph(kGpu);
  const auto refused = [&](const std::function<void()>& call, const std::string& name) {
    SCOPED_TRACE(name);
    expect_error<DeviceError>(
        [&] {
          graph.capture([&] {
            const Tensor more = in + 1;
            call();
          });
        },
        "[" + name, "cannot be part of a graph that is captured on cuda:0");
    EXPECT_FALSE(graph.is_captured());
  };
  refused([&] { (void)in.item<float>(); }, "_local_scalar_dense");
  refused([&] { (void)in.to(kCPU); }, "copy");
  refused([&] { in.copy_(on_cpu); }, "copy");
  refused([] { synchronize(kGpu); }, "synchronize");
  refused([] { current_stream(kGpu).synchronize(); }, "synchronize");
  refused([&] { event.synchronize(); }, "synchronize");
  refused([] { current_stream(kGpu).add_callback([] {}); }, "add_callback");
  refused([] { CudaGraph(kGpu).capture([] {}); }, "capture");
  // A failed capture does not prevent the next one.
  graph.capture([&] { in.add_(one); });
  graph.replay();
  EXPECT_THAT(floats_of(in), Each(2.0f));
}

TEST(CudaGraph, TakesStreamsThatForkAndJoin) {
  const Tensor in = of(1);
  Tensor left;
  Tensor right;
  Tensor out;
  const OwnedStream side(kGpu);
  CudaGraph graph(kGpu);
  graph.capture([&] {
    const Tensor base = in * 10;
    side.get().wait_stream(current_stream(kGpu));
    left = base + 1;
    {
      const StreamGuard guard(side.get());
      right = base + 2;
    }
    current_stream(kGpu).wait_stream(side.get());
    out = left * right;
  });
  in.fill_(2);
  graph.replay();
  EXPECT_THAT(floats_of(out), Each(21.0f * 22));
}

TEST(CudaGraph, MemoryThatAnotherStreamReadsIsReusedBehindIt) {
  CachingAllocator& memory = caching_allocator(kGpu);
  const AllocatorOptions before = memory.options();
  for (const StreamReuse reuse : {StreamReuse::kWait, StreamReuse::kPoll}) {
    AllocatorOptions options = before;
    options.stream_reuse = reuse;
    memory.set_options(options);
    const Tensor in = of(1), out = of(0);
    const OwnedStream side(kGpu);
    CudaGraph graph(kGpu);
    graph.capture([&] {
      // So large that the pool has no other memory for the next.
      constexpr int64_t kLarge = int64_t{32} << 20;
      Tensor read = empty({kLarge}, {DType::kF32, kGpu});
      const void* const place = read.data();
      read.slice(0, 0, 64).copy_(in * 10);
      side.get().wait_stream(current_stream(kGpu));
      {
        const StreamGuard guard(side.get());
        out.add_(read.slice(0, 0, 64));
      }
      read.record_stream(side.get());
      read = {};
      const int64_t waits = memory.memory_stats().num_stream_waits;
      const Tensor next = empty({kLarge}, {DType::kF32, kGpu});
      EXPECT_EQ(next.data(), place);
      EXPECT_EQ(memory.memory_stats().num_stream_waits, waits + 1) << "the graph orders them";
      current_stream(kGpu).wait_stream(side.get());
    });
    graph.replay();
    EXPECT_THAT(floats_of(out), Each(10.0f));
  }
  memory.set_options(before);
}

TEST(CudaGraph, AStreamThatDoesNotJoinIsAnError) {
  const Tensor in = of(1);
  const Tensor one = of(1);
  const OwnedStream side(kGpu);
  CudaGraph graph(kGpu);
  expect_error<DeviceError>(
      [&] {
        graph.capture([&] {
          side.get().wait_stream(current_stream(kGpu));
          const StreamGuard guard(side.get());
          in.add_(one);
        });
      },
      "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "the first must wait for all others");
  EXPECT_THAT(floats_of(in + 1), Each(2.0f)) << "the device stays usable";
}

TEST(CudaGraph, AWaitForWorkThatIsNotCapturedIsAnError) {
  const Tensor in = of(1);
  CudaGraph graph(kGpu);
  expect_error<DeviceError>(
      [&] { graph.capture([&] { current_stream(kGpu).wait_stream(default_stream(kGpu)); }); },
      "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "may wait only for work that is captured with them");
  EXPECT_THAT(floats_of(in), Each(1.0f));
}

TEST(CudaGraph, OtherThreadsWorkMeanwhile) {
  const Tensor in = of(1);
  Tensor theirs;
  CudaGraph graph(kGpu);
  graph.capture([&] {
    const Tensor mine = in + 1;
    const int64_t blocks = caching_allocator(kGpu).live_blocks(graph.pool());
    std::thread([&] {
      theirs = exp(of(0));
      EXPECT_THAT(floats_of(theirs), Each(1.0f));
      expect_error<DeviceError>([] { synchronize(kGpu); }, "[synchronize]",
                                "while a thread captures a graph");
    }).join();
    EXPECT_EQ(caching_allocator(kGpu).live_blocks(graph.pool()), blocks);
  });
  synchronize(kGpu);
}

TEST(CudaGraph, KernelsOfPlugInsAreRecordedWithTheirScratch) {
  const Plugin plugin = load_library(built_plugin("rms_normalize"));
  const Tensor in = of(1, 5000);
  Tensor out;
  CudaGraph graph(kGpu);
  graph.capture([&] { out = call_op("my::rms_normalize", {in, 0.0}); });
  in.fill_(-4);
  graph.replay();
  EXPECT_THAT(floats_of(out), Each(-1.0f));
}

TEST(CudaGraph, TheStreamSanitizerKnowsItsOrder) {
  std::vector<std::string> reports;
  stream_sanitizer::set_report_handler([&](const std::string& text) { reports.push_back(text); });
  stream_sanitizer::enable(true);
  const Tensor in = of(1);
  Tensor out;
  {
    CudaGraph graph(kGpu);
    graph.capture([&] { out = in * 3; });
    graph.replay();
    EXPECT_THAT(floats_of(out), Each(3.0f));
  }
  stream_sanitizer::enable(false);
  stream_sanitizer::set_report_handler({});
  EXPECT_THAT(reports, ::testing::IsEmpty());
}

TEST(CudaGraph, SaysWhatItIsFor) {
  expect_error<DeviceError>([] { CudaGraph graph(kCPU); }, "expected a cuda device, got cpu");
  expect_error<DeviceError>([] { CudaGraph graph(Device{DeviceType::kCUDA, 7}); }, "cuda:7");
  CudaGraph graph(kGpu);
  expect_error<DeviceError>([&] { graph.replay(); }, "there is nothing to replay");
  graph.capture([] {});
  graph.replay();
  expect_error<DeviceError>([&] { graph.capture([] {}); }, "has been captured");
}

}  // namespace
}  // namespace lockstep
