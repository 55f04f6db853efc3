// Operations that NCCL takes long to launch: those who start them go on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "dist/nccl/nccl_group.h"
#include "dist/nccl/nccl_launcher.h"
#include "tests/core/expect_error.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(NcclLauncher, RunsTasksInOrder) {
  std::vector<int> ran;
  {
    NcclLauncher launcher;
    for (int i = 0; i < 3; ++i) launcher.add([&ran, i] { ran.push_back(i); });
    launcher.run([&ran] { ran.push_back(3); });
    EXPECT_THAT(ran, ElementsAre(0, 1, 2, 3));
    launcher.add([&ran] { ran.push_back(4); });
  }
  EXPECT_THAT(ran, ElementsAre(0, 1, 2, 3, 4)) << "the destructor runs what is left";
}

TEST(NcclLauncher, ThrowsTheErrorOfATaskThatIsWaitedFor) {
  NcclLauncher launcher;
  EXPECT_THROW(launcher.run([] { throw std::runtime_error("no"); }), std::runtime_error);
  bool ran = false;
  launcher.run([&ran] { ran = true; });
  EXPECT_TRUE(ran);
}

float first_of(const Tensor& tensor) { return tensor.to(kCPU).data<float>()[0]; }

/// Waits until as many ranks have come, once more, as the test has.
void meet(std::atomic<int>& came, int size) {
  const int round = came++ / size;
  while (came < (round + 1) * size) std::this_thread::yield();
}

TEST(NcclLaunch, ThatTakesLongLetsItsCallerGoOn) {
  FakeNccl fake;
  std::atomic<int> came = 0;
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    fake.hold_launches(true);
    const Tensor first = host_ones(100);
    const Tensor second = host_ones(200);
    const Work sum = group.all_reduce(first);
    const Work gradient = group.all_reduce(second, {ReduceOp::kMax});
    // No lock is held: other operations begin and end, and other threads start theirs.
    const Tensor on_cpu = empty({1}, {DType::kF32, kCPU}).fill_(1);
    group.all_reduce(on_cpu).wait();
    EXPECT_EQ(*on_cpu.data<float>(), 2);
    Work third;
    std::thread([&] { third = group.all_reduce(host_ones(300)); }).join();
    EXPECT_FALSE(sum.is_completed());
    meet(came, 2);
    fake.hold_launches(false);
    sum.wait();
    EXPECT_EQ(first_of(first), 2) << "wait() returns once the results are in the stream's order";
    gradient.wait();
    EXPECT_EQ(first_of(second), 1);
    third.synchronize();
  });
  std::array<std::vector<size_t>, 2> counts;
  for (const FakeNccl::Call& call : fake.calls()) {
    counts[static_cast<size_t>(call.rank)].push_back(call.count);
  }
  for (const std::vector<size_t>& each : counts) EXPECT_THAT(each, ElementsAre(100, 200, 300));
}

TEST(NcclLaunch, OfSeveralGroupsKeepsTheOrderOfTheirCalls) {
  FakeNccl fake;
  std::atomic<int> came = 0;
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    const auto other = group.subgroup({0, 1}, "other");
    meet(came, 2);
    fake.hold_launches(true);
    std::vector<Work> works;
    for (int64_t i = 1; i <= 6; ++i) {
      works.push_back((i % 2 == 0 ? *other : group).all_reduce(host_ones(i)));
    }
    meet(came, 2);
    fake.hold_launches(false);
    for (const Work& work : works) work.synchronize();
  });
  std::array<std::vector<size_t>, 2> counts;
  for (const FakeNccl::Call& call : fake.calls()) {
    counts[static_cast<size_t>(call.rank)].push_back(call.count);
  }
  for (const std::vector<size_t>& each : counts) EXPECT_THAT(each, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(NcclLaunch, ThatHangsEndsWithAnAbort) {
  FakeNccl fake;
  std::atomic<int> came = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.set_timeout(10min);
    fake.hold_launches(true);
    const Work sum = group.all_reduce(host_ones(100));
    const Work next = group.all_reduce(host_ones(100));
    meet(came, 2);
    if (group.rank() == 1) group.abort("[data] shard 3 is truncated");
    expect_error<PeerLostError>([&] { next.wait(); }, "shard 3 is truncated");
    sum.wait();
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<PeerLostError>([&] { std::rethrow_exception(error); }, "shard 3 is truncated");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  EXPECT_EQ(fake.count("ncclCommAbort"), 2);
}

TEST(NcclLaunch, ThatHangsIsNamedWhenItsTimeIsOver) {
  FakeNccl fake;
  std::atomic<int> came = 0;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.all_reduce(host_ones(8)).synchronize();
    meet(came, 2);
    fake.hold_launches(true);
    group.set_timeout(300ms);
    group.all_reduce(host_ones(64), {ReduceOp::kMax}).wait();
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<TimeoutError>([&] { std::rethrow_exception(error); },
                               "[all_reduce] all_reduce #1 of 64 float32, max in group world: NCCL "
                               "did not get ready within the time limit");
  }
  EXPECT_EQ(fake.count("ncclCommAbort"), 2);
}

TEST(NcclLaunch, ThatNcclRefusesIsTheErrorOfItsWaitAndOfLaterCalls) {
  FakeNccl fake;
  (void)run_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
    fake.fail_next("ncclAllReduce", nccl::Result::kInvalidUsage);
    const Work refused = group.all_reduce(host_ones(4));
    EXPECT_THROW(refused.wait(), BackendError);
    EXPECT_THROW(refused.synchronize(), BackendError);
    EXPECT_THROW((void)group.all_reduce(host_ones(4)), BackendError);
  });
}

TEST(NcclLaunch, OfABarrierIsWaitedForAtTheGroupsEnd) {
  FakeNccl fake;
  std::atomic<int> came = 0;
  std::thread release;
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    fake.hold_launches(true);
    group.all_reduce(host_ones(4));
    group.barrier();
    meet(came, 2);
    if (group.rank() == 0) {
      release = std::thread([&] { fake.hold_launches(false); });
    }
  });
  release.join();
  EXPECT_EQ(fake.count("ncclCommAbort"), 0);
  EXPECT_EQ(fake.count("ncclCommDestroy"), 2);
}

}  // namespace
}  // namespace lockstep::dist
