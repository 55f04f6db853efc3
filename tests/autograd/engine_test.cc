// How the engine runs nodes: threads, order, nesting, concurrent backwards.

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "autograd/anomaly_mode.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/graph_run.h"
#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "autograd/worker_observer.h"
#include "core/base/error.h"
#include "core/base/phase.h"
#include "core/base/spans/span_recorder.h"
#include "core/dispatch/cpu_fallback.h"
#include "core/dispatch/observer.h"
#include "core/memory/capture_scope.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"
#include "tests/core/base/child_process.h"
#include "tests/core/tensor/far_memory.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using Numbers = std::vector<double>;

constexpr Device kFirst{DeviceType::kPrivate1, 0};
constexpr Device kSecond{DeviceType::kPrivate1, 1};

/// Devices in the kPrivate1 slot that count as asynchronous, so that each has a backward thread.
class DeviceWorkers : public ::testing::Test {
 protected:
  void SetUp() override {
    static FarMemory* const memory = new FarMemory();
    set_allocator(DeviceType::kPrivate1, memory);
    set_asynchronous(DeviceType::kPrivate1, true);
  }
  void TearDown() override {
    set_asynchronous(DeviceType::kPrivate1, false);
    set_allocator(DeviceType::kPrivate1, nullptr);
  }

  const Registration fallback_ = register_cpu_fallback(Key::kPrivate1);
};

/// Stores in `thread` the id of the thread that runs the tensor's grad_fn.
void note_thread(const Tensor& tensor, std::thread::id& thread) {
  register_prehook(*tensor.grad_fn(),
                   [&thread](std::span<Tensor>) { thread = std::this_thread::get_id(); });
}

TEST_F(DeviceWorkers, EachDeviceHasAThreadAndTheCallerHasTheCpu) {
  const Tensor x = leaf({1, 2});
  const Tensor on_first = x.to(kFirst) * 2;
  const Tensor on_second = x.to(kSecond) * 3;
  const Tensor again = x.to(kFirst) * 5;
  const Tensor on_cpu = on_first.to(kCPU) + on_second.to(kCPU) + again.to(kCPU);
  std::thread::id first, second, third, cpu;
  note_thread(on_first, first);
  note_thread(on_second, second);
  note_thread(again, third);
  note_thread(on_cpu, cpu);
  on_cpu.sum().backward();
  EXPECT_EQ(elements(x.grad()), (Numbers{10, 10}));
  EXPECT_EQ(cpu, std::this_thread::get_id());
  EXPECT_EQ(first, third);
  EXPECT_EQ((std::set{first, second, cpu}.size()), 3U);
}

TEST_F(DeviceWorkers, RunAlsoTheLeavesOfTheirDevice) {
  const Tensor x = leaf({1, 2}).detach().to(kFirst).set_requires_grad();
  std::thread::id thread;
  register_post_accumulate_grad_hook(x,
                                     [&](const Tensor&) { thread = std::this_thread::get_id(); });
  (x * 4).sum().backward();
  EXPECT_EQ(x.grad().device(), kFirst);
  EXPECT_EQ(elements(x.grad().to(kCPU)), (Numbers{4, 4}));
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_NE(thread, std::thread::id());
}

TEST_F(DeviceWorkers, RunNodesThatAreReadyInTheOppositeOrderOfForward) {
  const Tensor x = leaf({1, 2});
  const Tensor there = x.to(kFirst);
  std::vector<int> order;
  std::vector<Tensor> parts;
  for (int i = 0; i < 6; ++i) {
    parts.push_back(there * (i + 1));
    register_prehook(*parts.back().grad_fn(),
                     [&order, i](std::span<Tensor>) { order.push_back(i); });
  }
  cat(parts).sum().backward();  // one node makes all of them ready
  EXPECT_EQ(order, (std::vector<int>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(elements(x.grad()), (Numbers{21, 21}));
}

TEST_F(DeviceWorkers, HaveTheCallersState) {
  const Tensor x = leaf({1}).detach().to(kFirst).set_requires_grad();
  const Tensor y = x * x;
  bool recording = false;
  Device device = kCPU;
  y.register_hook([&](const Tensor&) {
    recording = is_grad_enabled();
    device = default_device();
    return Tensor();
  });
  {
    const DefaultDeviceGuard on_second(kSecond);
    GradOptions options;
    options.create_graph = true;
    grad({y.sum()}, {x}, {}, options);
  }
  EXPECT_TRUE(recording);
  EXPECT_EQ(device, kSecond);
  const Tensor z = x * x;
  z.register_hook([&](const Tensor&) {
    recording = is_grad_enabled();
    return Tensor();
  });
  z.sum().backward();
  EXPECT_FALSE(recording);
}

TEST_F(DeviceWorkers, WhatOneThrowsReachesTheCallerAndTheRestIsLeftOut) {
  const Tensor x = leaf({1});
  const Tensor there = x.to(kFirst) * 2;
  there.register_hook([](const Tensor&) -> Tensor { throw DataError("on a worker"); });
  const Tensor here = x * 3;
  EXPECT_THROWS((there.to(kCPU) + here).sum().backward(), DataError, "on a worker");
  (x.to(kFirst) * 2).to(kCPU).sum().backward();  // the worker is still usable
  EXPECT_TRUE(x.grad().defined());
}

TEST_F(DeviceWorkers, ABackwardInsideABackwardOnAWorkerUsesTheSameThread) {
  const Tensor x = leaf({1}).detach().to(kFirst).set_requires_grad();
  const Tensor y = x * 2;
  std::thread::id outer, inner;
  Numbers nested;
  y.register_hook([&](const Tensor&) {
    outer = std::this_thread::get_id();
    const EnableGradGuard recording;
    const Tensor z = x * 7;
    note_thread(z, inner);
    nested = elements(grad({z.sum()}, {x})[0].to(kCPU));
    return Tensor();
  });
  y.sum().backward();
  EXPECT_EQ(outer, inner);
  EXPECT_EQ(nested, Numbers{7});
}

TEST_F(DeviceWorkers, TwoThatWaitForEachOtherInNestedBackwardsGoOn) {
  const Tensor x = leaf({1});
  std::barrier both(2);
  // Each device's hook runs a backward through the other device, both at the same time.
  const auto crossing = [&](Device here, Device other) {
    const Tensor y = x.to(here) * 2;
    y.register_hook([&both, &x, other](const Tensor&) {
      both.arrive_and_wait();
      const EnableGradGuard recording;
      grad({(x.to(other) * 3).to(kCPU).sum()}, {x});
      return Tensor();
    });
    return y.to(kCPU);
  };
  (crossing(kFirst, kSecond) + crossing(kSecond, kFirst)).sum().backward();
  EXPECT_EQ(elements(x.grad()), Numbers{4});
}

TEST_F(DeviceWorkers, MayQueueFinalCallbacksOfABackwardWithoutWorkersAtTheSameTime) {
  constexpr int kRounds = 10;
  constexpr int kEach = 20'000;
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  std::barrier both(2);
  int called = 0;
  y.register_hook([&](const Tensor&) {
    const EnableGradGuard recording;
    const auto through = [&](Device device) {
      const Tensor z = x.to(device) * 3;
      z.register_hook([&](const Tensor&) {
        for (int round = 0; round < kRounds; ++round) {
          both.arrive_and_wait();
          for (int i = 0; i < kEach; ++i) queue_final_callback([&] { ++called; });
        }
        return Tensor();
      });
      return z.to(kCPU);
    };
    grad({(through(kFirst) + through(kSecond)).sum()}, {x});
    return Tensor();
  });
  y.sum().backward();
  EXPECT_EQ(called, 2 * kRounds * kEach);
}

TEST_F(DeviceWorkers, ServeBackwardsOfSeveralThreads) {
  constexpr int kThreads = 4;
  const Tensor x = leaf({1, 2});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        ((x.to(kFirst) * 2).to(kSecond) * 3).to(kCPU).sum().backward();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(elements(x.grad()), (Numbers{480, 480}));
}

/// Counts calls of operators, from any thread.
struct CountedCalls : CallObserver {
  void enter(const Operator& op, KeySet, const Stack&) override {
    if (op.name().starts_with("mul")) ++entered;
  }
  void exit(const Operator& op, const Stack&) noexcept override {
    if (op.name().starts_with("mul")) ++left;
  }
  std::atomic<int> entered = 0;
  std::atomic<int> left = 0;
};

TEST_F(DeviceWorkers, ReportTheirCallsToTheProcesssObserver) {
  const Tensor x = leaf({1}).detach().to(kFirst).set_requires_grad();
  EXPECT_EQ(worker_observer(), nullptr);
  CountedCalls outer, inner;
  const auto run = [&] { (x * x).sum().backward(); };
  {
    const WorkerObserverGuard guard(outer);
    {
      const WorkerObserverGuard inside(inner);
      EXPECT_EQ(worker_observer(), &inner);
      run();
    }
    EXPECT_EQ(worker_observer(), &outer);
    EXPECT_EQ(outer.entered, 0);
    run();
  }
  run();
  EXPECT_EQ(inner.entered, 2) << "of the two gradients, and not of forward";
  EXPECT_EQ(inner.left, 2);
  EXPECT_EQ(outer.entered, 2);
}

TEST_F(DeviceWorkers, HaveTheCallersAnomalyMode) {
  const Tensor x = leaf({1}).detach().to(kFirst).set_requires_grad();
  std::vector<std::pair<bool, bool>> modes;
  const auto run = [&] {
    const Tensor y = x * 2;
    y.register_hook([&](const Tensor&) {
      modes.emplace_back(is_anomaly_enabled(), is_anomaly_check_nan_enabled());
      return Tensor();
    });
    y.sum().backward();
  };
  run();
  {
    const AnomalyModeGuard on(true, false);
    run();
  }
  {
    const AnomalyModeGuard on;
    run();
  }
  run();
  EXPECT_EQ(modes, (std::vector<std::pair<bool, bool>>{
                       {false, false}, {true, false}, {true, true}, {false, false}}));
}

TEST_F(DeviceWorkers, NothingRunsAfterTheFirstError) {
  const Tensor x = leaf({1});
  int later = 0;
  const Tensor there = x.to(kFirst) * 2;
  there.register_hook([&](const Tensor&) {
    ++later;
    return Tensor();
  });
  // Recorded later, so its node runs first; both are ready at once.
  const Tensor next = x.to(kFirst) * 3;
  next.register_hook([](const Tensor&) -> Tensor { throw DataError("the first"); });
  const Tensor sum = (there + next).to(kCPU).sum();
  EXPECT_THROWS(sum.backward(), DataError, "the first");
  EXPECT_EQ(later, 0);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, TheThreadIsInTheBackwardPhaseAndOutOfAutocast) {
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  Phase phase = Phase::kForward;
  uint64_t first = 0, second = 0;
  y.register_hook([&](const Tensor&) {
    phase = current_phase();
    (first == 0 ? first : second) = GraphRun::of_this_thread("test").id();
    return Tensor();
  });
  EXPECT_EQ(GraphRun::of_this_thread(), nullptr);
  y.sum().backward({}, /*retain_graph=*/true);
  EXPECT_EQ(phase, Phase::kBackward);
  EXPECT_EQ(current_phase(), Phase::kForward);
  y.sum().backward();
  EXPECT_GT(second, first) << "each run has a number of its own";
  EXPECT_FALSE(GraphRun::node_of_this_thread());
}

TEST(Engine, NodesAreSpansOfAProfile) {
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  const Tensor sum = y.sum();
  SpanRecorder recorder({.threads = 2, .spans = 256, .text = 8192});
  recorder.start();
  sum.backward();
  const SpanRecording recording = recorder.stop();
  ASSERT_EQ(recording.threads.size(), 1u);
  std::vector<std::tuple<std::string, uint64_t, std::string>> nodes;
  for (const SpanRecord& span : recording.threads[0].spans) {
    if (span.kind != SpanKind::kNode) continue;
    nodes.emplace_back(recording.threads[0].name(span), span.sequence,
                       recording.threads[0].details(span));
  }
  EXPECT_EQ(nodes, (std::vector<std::tuple<std::string, uint64_t, std::string>>{
                       {"sum", sum.grad_fn()->sequence(), "operator"},
                       {"mul.Scalar", y.grad_fn()->sequence(), "operator"},
                       {"AccumulateGrad", 0, ""}}));
}

TEST(Engine, RunsTheLatestRecordedFirst) {
  const Tensor x = leaf({1});
  std::vector<std::string> order;
  const auto noted = [&](const Tensor& tensor, std::string what) {
    register_prehook(*tensor.grad_fn(), [&, what](std::span<Tensor>) { order.push_back(what); });
    return tensor;
  };
  const Tensor a = noted(x * 2, "a");
  const Tensor b = noted(x * 3, "b");
  const Tensor c = noted(a * 5, "c");
  (b + c).sum().backward();
  EXPECT_EQ(order, (std::vector<std::string>{"c", "b", "a"}));
}

TEST(Engine, NestedBackwardsOfAnyDepthRun) {
  constexpr int kDepth = 2000;
  std::function<double(int)> at_depth = [&](int depth) {
    if (depth == 0) return 1.0;
    const EnableGradGuard recording;
    const Tensor x = leaf({1});
    const Tensor y = x * 1;
    double below = 0;
    y.register_hook([&, depth](const Tensor&) {
      below = at_depth(depth - 1);
      return Tensor();
    });
    y.sum().backward();
    return below + elements(x.grad())[0];
  };
  EXPECT_EQ(at_depth(kDepth), kDepth + 1);
}

TEST(Engine, NestedBackwardsOfAnyDepthTakePartInTheCapture) {
  constexpr int kDepth = 60;  // more than one thread runs
  CachingAllocator& memory = caching_allocator(kMeta);
  const ActiveCapture capture{{kMeta, 0}, &memory, memory.create_pool()};
  std::vector<const ActiveCapture*> captures;
  std::function<void(int)> at_depth = [&](int depth) {
    const EnableGradGuard recording;
    const Tensor y = leaf({1}) * 1;
    y.register_hook([&, depth](const Tensor&) {
      captures.push_back(active_capture());
      if (depth > 1) at_depth(depth - 1);
      return Tensor();
    });
    y.sum().backward();
  };
  {
    const CaptureScope capturing(&capture);
    at_depth(kDepth);
  }
  EXPECT_EQ(captures, std::vector<const ActiveCapture*>(kDepth, &capture));
  memory.release_pool(capture.pool);
}

TEST(Engine, AFinalCallbackFromDeepInsideRunsAfterTheOutermostBackward) {
  constexpr int kDepth = 60;  // more than one thread runs
  std::vector<int> done;
  std::function<void(int)> at_depth = [&](int depth) {
    const EnableGradGuard recording;
    const Tensor y = leaf({1}) * 1;
    y.register_hook([&, depth](const Tensor&) {
      if (depth == kDepth) queue_final_callback([&] { done.push_back(-1); });
      if (depth < kDepth) at_depth(depth + 1);
      return Tensor();
    });
    y.sum().backward();
    done.push_back(depth);
  };
  const Tensor y = leaf({1}) * 1;
  y.register_hook([&](const Tensor&) {
    at_depth(1);
    return Tensor();
  });
  y.sum().backward();
  ASSERT_EQ(done.size(), kDepth + 1U);
  EXPECT_EQ(done.back(), -1);
}

TEST(Engine, AnErrorDeepInsideReachesTheOutermostCaller) {
  std::function<void(int)> at_depth = [&](int depth) {
    const EnableGradGuard recording;
    const Tensor y = leaf({1}) * 1;
    y.register_hook([&, depth](const Tensor&) -> Tensor {
      if (depth == 0) throw DataError("at the bottom");
      at_depth(depth - 1);
      return {};
    });
    y.sum().backward();
  };
  EXPECT_THROWS(at_depth(150), DataError, "at the bottom");
  EXPECT_TRUE(is_grad_enabled());
}

TEST(Engine, GradModeIsTheCallersAgainAfterANestedBackward) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  bool before = true, after = true;
  y.register_hook([&](const Tensor&) {
    before = is_grad_enabled();
    {
      const EnableGradGuard recording;
      GradOptions options;
      options.create_graph = true;
      const Tensor z = x * 3;
      grad({z.sum()}, {x}, {}, options);
    }
    after = is_grad_enabled();
    return Tensor();
  });
  y.sum().backward();
  EXPECT_FALSE(before);
  EXPECT_FALSE(after);
}

TEST(Engine, ThreadsMayRunOneGraphAtOnce) {
  const Tensor x = leaf({1, 2});
  const Tensor shared = x.exp() * x;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) shared.backward(sample::vector({1, 1}), true);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Tensor once = grad({shared}, {x}, {sample::vector({1, 1})})[0];
  EXPECT_NEAR(elements(x.grad())[0], 100 * elements(once)[0], 1e-9);
  EXPECT_NEAR(elements(x.grad())[1], 100 * elements(once)[1], 1e-9);
}

TEST(Engine, ForksOfOneGraphOnThreadsJoinInTheirLeaf) {
  const Tensor x = leaf({1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&x, t] {
      Tensor y = x;
      for (int i = 0; i < 10; ++i) y = y * (t + 1);
      y.sum().backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(elements(x.grad()), Numbers{1.0 + 1024 + 59049 + 1048576});
}

TEST(Engine, AnErrorInOneThreadDoesNotDisturbAnother) {
  const Tensor x = leaf({1});
  std::atomic<int> failed = 0;
  std::thread failing([&] {
    for (int i = 0; i < 20; ++i) {
      try {
        sample::failing(x * 2).backward();
      } catch (const DataError&) {
        ++failed;
      }
    }
  });
  for (int i = 0; i < 20; ++i) (x * 2).sum().backward();
  failing.join();
  EXPECT_EQ(failed, 20);
  EXPECT_EQ(elements(x.grad()), Numbers{40});
}

TEST(Engine, MayBeForkedWhileOtherThreadsUseIt) {
  if (!kForksAmongBusyThreads) GTEST_SKIP() << "the allocator may stay locked in a child";
  const Tensor x = leaf({1});
  (x * 2).sum().backward();  // creates the engine's state before the fork
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) (x * 2).sum().backward();
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(status_of_child([] {
                const Tensor y = leaf({3});
                (y * 2).sum().backward();
                return elements(y.grad()) == Numbers{2};
              }),
              0);
  }
  stop = true;
  busy.join();
}

TEST_F(DeviceWorkers, AForkedChildStartsItsOwn) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses threads after a fork";
  const Tensor x = leaf({1});
  (x.to(kFirst) * 2).to(kCPU).sum().backward();
  EXPECT_EQ(status_of_child([&] {
              x.set_grad({});
              (x.to(kFirst) * 5).to(kCPU).sum().backward();
              return elements(x.grad()) == Numbers{5};
            }),
            0);
}

TEST(Grad, MaterializeGradsGivesZerosForAnUnusedInput) {
  const Tensor x = leaf({1}), unused = leaf({1, 2});
  GradOptions options;
  options.materialize_grads = true;
  const std::vector<Tensor> grads = grad({(x * 2).sum()}, {x, unused}, {}, options);
  EXPECT_EQ(elements(grads[0]), Numbers{2});
  EXPECT_EQ(elements(grads[1]), (Numbers{0, 0}));
}

TEST(Grad, TakesPlacesInTheGraph) {
  const Tensor x = leaf({3});
  Edge place;
  Tensor z;
  {
    const Tensor y = x * x;
    place = gradient_edge(y);
    z = y * 2;
  }
  EXPECT_EQ(elements(grad({z.sum()}, {&place, 1})[0]), Numbers{2});
}

TEST(BackwardInputs, OfComputedTensorsFillTheirGradToo) {
  const Tensor x = leaf({3});
  const Tensor y = x * x;
  BackwardOptions options;
  options.inputs = {y};
  options.retain_graph = true;
  const Tensor z = (y * 4).sum();
  backward({z}, {}, options);
  EXPECT_EQ(elements(y.grad()), Numbers{4});
  EXPECT_FALSE(x.grad().defined());
  options.inputs = {x, y};
  backward({z}, {}, options);
  EXPECT_EQ(elements(y.grad()), Numbers{8});
  EXPECT_EQ(elements(x.grad()), Numbers{24});
}

}  // namespace
}  // namespace lockstep
