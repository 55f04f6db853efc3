// How groups over a fake NCCL use the memory of tensors, and in which order with other work.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/device/stream_sanitizer.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "core/tensor/stream.h"
#include "dist/nccl/nccl_group.h"
#include "tests/core/base/child_process.h"
#include "tests/core/device/watched_memory.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(NcclMemory, MemoryIsKeptUntilTheEndAndMarkedAsUsedByTheStreams) {
  FakeNccl fake;
  fake.hold_operations(true);
  std::atomic<int> checked = 0;
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    WatchedMemory memory(kHostDevice);
    const Stream own = current_stream(kHostDevice);
    const Work sum = group.all_reduce(memory.vector(10).fill_(1));
    EXPECT_EQ(memory.freed(), 0) << "the operation still uses it";
    if (++checked == 2) fake.hold_operations(false);
    sum.synchronize();
    EXPECT_EQ(memory.freed(), 1);
    if (group.rank() == 0) group.send(memory.vector(10).fill_(1), 1).synchronize();
    if (group.rank() == 1) group.recv(memory.vector(10), 0).synchronize();
    EXPECT_EQ(memory.freed(), 2);
    const std::vector<Stream> uses = memory.uses();
    ASSERT_EQ(uses.size(), 2u);
    EXPECT_NE(uses[0], own);
    EXPECT_NE(uses[1], own);
    EXPECT_NE(uses[0], uses[1]) << "messages have a stream of their own";
  });
}

TEST(NcclMemory, MemoryOfAnOperationThatNcclRefusesIsMarkedToo) {
  FakeNccl fake;
  (void)run_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
    WatchedMemory memory(kHostDevice);
    fake.fail_next("ncclAllReduce", nccl::Result::kInvalidUsage);
    EXPECT_THROW(group.all_reduce(memory.vector(10).fill_(1)).wait(), BackendError);
    EXPECT_EQ(memory.uses().size(), 1u);
  });
}

TEST(NcclMemory, AMessageWaitsForWhatWasQueuedBeforeIt) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    const Tensor tensor = host_ones(1000);
    if (group.rank() == 1) {
      group.recv(tensor, 0).synchronize();
      EXPECT_EQ(tensor.to(kCPU).data<float>()[999], 5);
      return;
    }
    std::atomic<bool> open = false;
    current_stream(kHostDevice).add_callback([&open] { open.wait(false); });
    tensor.fill_(5);
    const Work work = group.send(tensor, 1);
    std::this_thread::sleep_for(20ms);
    open = true;
    open.notify_all();
    work.synchronize();
  });
}

TEST(NcclMemory, TheStreamCheckerSeesWhichTensorsAreReadAlone) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer finds the race as well";
  FakeNccl fake;
  stream_sanitizer::enable(true);
  std::vector<std::string> reports;
  std::mutex lock;
  stream_sanitizer::set_report_handler([&](const std::string& report) {
    const std::lock_guard guard(lock);
    reports.push_back(report);
  });
  all_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
    const Tensor input = host_ones(1000);
    const Tensor output = host_ones(1000);
    fake.hold_operations(true);
    const Work gather = group.all_gather(output, input);
    const Tensor copy = host_ones(1000).copy_(input);
    EXPECT_EQ(reports.size(), 0u) << "two may read";
    copy.copy_(output);
    EXPECT_EQ(reports.size(), 1u);
    input.fill_(2);
    EXPECT_EQ(reports.size(), 2u);
    fake.hold_operations(false);
    gather.synchronize();

    // Rows of sums need not be adjacent: what is between them is nobody's.
    const Tensor wide = empty({2, 2000}, {DType::kF32, kHostDevice}).fill_(1);
    const Tensor sums = slice(wide, 1, 0, 1000);
    const Tensor sum = host_ones(1000);
    std::atomic<bool> open = false;
    current_stream(kHostDevice).add_callback([&open] { open.wait(false); });
    const Work tree = group.tree_all_reduce(sum, sums, 3);
    slice(select(wide, 0, 0), 0, 1000, 2000).fill_(5);
    slice(select(wide, 0, 1), 0, 1000, 2000).fill_(5);
    EXPECT_EQ(reports.size(), 2u);
    select(sums, 0, 1).fill_(5);
    EXPECT_EQ(reports.size(), 3u);
    select(sums, 0, 0).fill_(5);
    EXPECT_EQ(reports.size(), 4u);
    open = true;
    open.notify_all();
    tree.synchronize();
  });
  stream_sanitizer::set_report_handler({});
  stream_sanitizer::enable(false);
  for (size_t i = 0; i < 2; ++i) EXPECT_THAT(reports.at(i), HasSubstr("`all_gather`"));
}

}  // namespace
}  // namespace lockstep::dist
