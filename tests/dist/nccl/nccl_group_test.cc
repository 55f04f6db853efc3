// Groups over a fake NCCL whose ranks are threads: the requirements on all groups, and the NCCL
// calls that each operation makes.

#include "dist/nccl/nccl_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/device/device_runtime.h"
#include "core/device/stream_sanitizer.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "core/tensor/stream.h"
#include "dist/collectives/leaf_deal.h"
#include "tests/core/base/child_process.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/group_conformance.h"
#include "tests/dist/nccl/fake_nccl_job.h"
#include "tests/dist/nccl/fake_nccl_staging.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

class NcclGroupCases : public testing::TestWithParam<std::tuple<size_t, int>> {};

TEST_P(NcclGroupCases, Hold) {
  const auto [index, size] = GetParam();
  const FakeNccl fake;
  all_nccl_ranks(fake, {.size = size}, [index = index](NcclGroup& group) {
    const auto staged = staged_group(group, kHostDevice);
    group_cases()[index].run(*staged);
  });
}

/// The same cases with NCCL calls that complete after several polls, and small chunks.
TEST_P(NcclGroupCases, HoldInPieces) {
  const auto [index, size] = GetParam();
  FakeNccl fake;
  fake.set_polls(2);
  FakeNcclJob job{.size = size};
  job.options.chunk_bytes = 4096;
  all_nccl_ranks(fake, job, [index = index](NcclGroup& group) {
    const auto staged = staged_group(group, kHostDevice);
    group_cases()[index].run(*staged);
  });
}

INSTANTIATE_TEST_SUITE_P(Group, NcclGroupCases,
                         testing::Combine(testing::Range(size_t{0}, group_cases().size()),
                                          testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return std::string(group_cases()[std::get<0>(info.param)].name) + "By" +
                                  std::to_string(std::get<1>(info.param));
                         });

float first_of(const Tensor& tensor) { return tensor.to(kCPU).data<float>()[0]; }

std::vector<FakeNccl::Call> calls_of(const FakeNccl& fake, int rank) {
  std::vector<FakeNccl::Call> result = fake.calls();
  std::erase_if(result, [&](const FakeNccl::Call& call) { return call.rank != rank; });
  return result;
}

TEST(NcclGroup, RankZerosIdentifierIsEveryones) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 4}, [](NcclGroup& group) {
    EXPECT_STREQ(group.backend(), "nccl");
    const Tensor tensor = host_ones(3);
    group.all_reduce(tensor).wait();
    EXPECT_EQ(first_of(tensor), 4);
  });
  EXPECT_EQ(fake.count("ncclGetUniqueId"), 1);
  EXPECT_EQ(fake.count("ncclCommInitRankConfig"), 4);
}

TEST(NcclGroup, ItsConfigurationReachesNccl) {
  FakeNccl fake;
  FakeNcclJob job{.size = 1};
  job.options.config = {.min_ctas = 2,
                        .max_ctas = 8,
                        .cga_cluster_size = 4,
                        .net_name = "Socket",
                        .split_share = true,
                        .traffic_class = 3};
  all_nccl_ranks(fake, job, [](NcclGroup&) {});
  const nccl::Config config = fake.last_config();
  EXPECT_EQ(config.blocking, 0);
  EXPECT_EQ(config.min_ctas, 2);
  EXPECT_EQ(config.max_ctas, 8);
  EXPECT_EQ(config.cga_cluster_size, 4);
  EXPECT_EQ(config.split_share, 1);
  EXPECT_EQ(config.traffic_class, 3);
  EXPECT_EQ(fake.last_net_name(), "Socket");

  job.options.config = {};
  all_nccl_ranks(fake, job, [](NcclGroup&) {});
  EXPECT_EQ(fake.last_config().min_ctas, nccl::kUnset);
  EXPECT_EQ(fake.last_net_name(), "");
}

TEST(NcclGroup, CoalescedOperationsAreOneGroupOfCalls) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    const std::vector<Tensor> tensors{host_ones(3), host_ones(4), host_ones(5)};
    group.all_reduce(tensors).wait();
    group.all_reduce(tensors[0]).wait();
    EXPECT_EQ(first_of(tensors[0]), 4);
    EXPECT_EQ(first_of(tensors[2]), 2);
  });
  const auto calls = calls_of(fake, 1);
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_NE(calls[0].group, 0u);
  EXPECT_EQ(calls[0].group, calls[1].group);
  EXPECT_EQ(calls[0].group, calls[2].group);
  EXPECT_NE(calls[0].group, calls[3].group);
  EXPECT_EQ(calls[2].count, 5u);
}

TEST(NcclGroup, AllToAllIsSendsAndReceivesOfOneGroup) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    const std::vector<int64_t> splits{0, 1, 2};
    const std::vector<int64_t> gets(3, group.rank());
    const Tensor output = host_ones(3 * group.rank());
    group.all_to_all(output, host_ones(3), gets, splits).wait();
  });
  const auto calls = calls_of(fake, 1);
  std::multiset<std::string> names;
  for (const auto& call : calls) {
    names.insert(call.name);
    EXPECT_EQ(call.group, calls.front().group);
  }
  // Two sends, to ranks 1 and 2, as rank 0's part is empty; one receive from each rank.
  EXPECT_EQ(names, (std::multiset<std::string>{"ncclSend", "ncclSend", "ncclRecv", "ncclRecv",
                                               "ncclRecv"}));
}

TEST(NcclGroup, LargeTensorsAreCutAtTheLimit) {
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  job.options.chunk_bytes = 400;  // 100 f32 elements
  all_nccl_ranks(fake, job, [](NcclGroup& group) { group.all_reduce(host_ones(250)).wait(); });
  const auto calls = calls_of(fake, 0);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].count, 100u);
  EXPECT_EQ(calls[2].count, 50u);
  EXPECT_EQ(calls[0].group, calls[2].group);
}

TEST(NcclGroup, PremultipliedSumsAreAnOperationOfNccls) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      const Tensor tensor = host_ones(8, dtype);
      group.all_reduce(tensor, {ReduceOp::kPremultipliedSum, 0.25}).wait();
      EXPECT_EQ(first_of(tensor.to(DType::kF32)), 0.5f) << to_string(dtype);
    }
  });
  EXPECT_EQ(fake.count("ncclRedOpCreatePreMulSum"), 8);
  EXPECT_EQ(fake.count("ncclRedOpDestroy"), 8);
}

TEST(NcclGroup, BytesThatAreOnlyMovedMayBeOfAnyType) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    const Tensor tensor =
        host_ones(5, DType::kI16).mul_(host_ones(1, DType::kI16).fill_(group.rank() + 3));
    group.broadcast(tensor, 1).wait();
    EXPECT_EQ(tensor.to(kCPU).data<int16_t>()[4], 4);
  });
  EXPECT_EQ(calls_of(fake, 0).front().count, 10u);
}

/// Blocks a stream until it is opened.
class Gate {
 public:
  explicit Gate(const Stream& stream) {
    stream.add_callback([this] {
      std::unique_lock lock(mutex_);
      opened_.wait(lock, [this] { return open_; });
    });
  }
  void open() {
    const std::lock_guard guard(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

TEST(NcclGroup, OperationsWaitForWhatWasQueuedBeforeThem) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    const Tensor tensor = host_ones(1000);
    Gate gate(current_stream(kHostDevice));
    tensor.fill_(5);  // behind the gate
    const Work work = group.all_reduce(tensor);
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(work.is_completed()) << "it began before its tensor was written";
    gate.open();
    work.synchronize();
    EXPECT_EQ(first_of(tensor), 10);
  });
}

TEST(NcclGroup, WaitMakesTheCurrentStreamWaitAndNotTheCaller) {
  FakeNccl fake;
  std::atomic<int> waited = 0;
  fake.hold_operations(true);
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    const Tensor tensor = host_ones(1000);
    const Work work = group.all_reduce(tensor);
    work.wait();  // returns although the operation cannot begin
    tensor.mul_(empty({1}, {DType::kF32, kHostDevice}).fill_(3));
    const Stream stream = current_stream(kHostDevice);
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(stream.query()) << "later work did not wait for the operation";
    EXPECT_FALSE(work.is_completed());
    if (++waited == 2) fake.hold_operations(false);
    stream.synchronize();
    EXPECT_EQ(first_of(tensor), 6);
  });
}

/// Counts reports of the stream sanitizer while alive.
class Reports {
 public:
  Reports() {
    stream_sanitizer::enable(true);
    stream_sanitizer::set_report_handler([](const std::string&) {});
  }
  ~Reports() {
    stream_sanitizer::set_report_handler({});
    stream_sanitizer::enable(false);
  }
  int64_t count() const { return stream_sanitizer::reports(); }
};

TEST(NcclGroup, TheStreamCheckerSeesItsUsesOfMemory) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer finds the race as well";
  FakeNccl fake;
  const Reports reports;
  all_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
    const Tensor tensor = host_ones(1000);
    fake.hold_operations(true);
    const Work work = group.all_reduce(tensor);
    EXPECT_EQ(reports.count(), 0) << "it waits for what was queued before it";
    tensor.fill_(2);  // does not wait for the operation
    EXPECT_EQ(reports.count(), 1);
    fake.hold_operations(false);
    work.synchronize();

    const Tensor other = host_ones(1000);
    group.all_reduce(other).wait();
    other.fill_(3);
    EXPECT_EQ(reports.count(), 1);
  });
}

TEST(NcclGroup, MemoryIsNotReusedBeforeTheOperationIsThrough) {
  FakeNccl fake;
  fake.hold_operations(true);
  std::atomic<int> came = 0;
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    Tensor tensor = host_ones(50'000);
    const void* const address = tensor.data();
    const Work work = group.all_reduce(tensor);
    tensor = Tensor();
    const Tensor next = host_ones(50'000);
    EXPECT_NE(next.data(), address);
    if (++came == 2) fake.hold_operations(false);
    work.synchronize();
  });
}

TEST(NcclGroup, ItsStreamsGoFirst) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    group.all_reduce(host_ones(10)).wait();
    const Tensor tensor = host_ones(4);
    if (group.rank() == 0) group.send(tensor, 1).wait();
    if (group.rank() == 1) group.recv(tensor, 0).wait();
  });
  ASSERT_EQ(fake.calls().size(), 4u);
  for (const FakeNccl::Call& call : fake.calls()) EXPECT_LT(call.priority, 0) << call.name;
}

TEST(NcclGroup, TreeSumsMayBeInPlace) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    const auto rows =
        static_cast<int64_t>(subtrees(LeafDeal::even(8, group.size()).of(group.rank())).size());
    const Tensor sums = empty({rows, 1000}, {DType::kF32, kHostDevice});
    for (int64_t i = 0; i < 2; ++i) {
      const Tensor result = select(sums, 0, std::min(i, rows - 1));
      sums.fill_(1);
      group.tree_all_reduce(result, sums, 8).wait();
      // Subtrees of 2 leaves, of 2 and 1, and of 1 and 2, by rank.
      const Tensor here = result.to(kCPU);
      const auto* const values = here.data<float>();
      EXPECT_EQ(std::count(values, values + 1000, 5.0f), 1000);
    }
  });
}

TEST(NcclGroup, MessagesOfOtherSizesThanExpectedFailOnBoth) {
  FakeNccl fake;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    if (group.rank() == 0) {
      group.send(host_ones(10), 1, 7).wait();
    } else {
      group.recv(host_ones(20), 0, 7).wait();
    }
    group.barrier().wait();
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<MismatchError>([&] { std::rethrow_exception(error); },
                                "rank 0 sends 10 elements of float32", "of 20 float32");
  }
}

TEST(NcclGroup, MessagesHaveACommunicatorOfTheirOwn) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    if (group.rank() == 2) return;
    const Tensor tensor = host_ones(4);
    for (int i = 0; i < 3; ++i) {
      if (group.rank() == 0) group.send(tensor, 1).wait();
      if (group.rank() == 1) group.recv(tensor, 0).wait();
    }
  });
  EXPECT_EQ(fake.count("ncclGetUniqueId"), 2) << "the group's, and one for all three messages";
  for (const FakeNccl::Call& call : fake.calls()) EXPECT_EQ(call.size, 2);
}

TEST(NcclGroup, TensorsOfTheCpuGoTheOtherWay) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    const Tensor tensor = empty({4}, {DType::kF32, kCPU}).fill_(1);
    group.all_reduce(tensor).wait();
    EXPECT_EQ(tensor.data<float>()[3], 3);
  });
  EXPECT_TRUE(fake.calls().empty());
}

TEST(NcclGroup, TensorsOfAnotherDeviceAreRefused) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 1}, [](NcclGroup& group) {
    if (device_count(DeviceType::kHost) < 2) return;
    const Tensor other = empty({4}, {DType::kF32, Device{DeviceType::kHost, 1}});
    expect_error<DeviceError>([&] { group.all_reduce(other); }, "host:0", "host:1");
  });
}

TEST(NcclGroup, BarriersAreOneElementOfNccls) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) { group.barrier().wait(); });
  const auto calls = calls_of(fake, 0);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].name, "ncclAllReduce");
  EXPECT_EQ(calls[0].count, 1u);
}

TEST(NcclGroup, SubgroupsAreSplits) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    const auto pair = group.subgroup({2, 0}, "pair");
    EXPECT_EQ(pair == nullptr, group.rank() == 1);
    if (pair == nullptr) return;
    EXPECT_STREQ(pair->backend(), "nccl");
    const Tensor tensor = host_ones(2);
    pair->all_reduce(tensor).wait();
    EXPECT_EQ(first_of(tensor), 2);
  });
  EXPECT_EQ(fake.count("ncclCommSplit"), 3);
  EXPECT_EQ(fake.count("ncclGetUniqueId"), 1);
}

TEST(NcclGroup, BuffersAreRegisteredAsLongAsTheirHandle) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
    const Tensor tensor = host_ones(100);
    {
      NcclBuffer buffer = group.register_buffer(tensor);
      EXPECT_EQ(fake.buffers(), 1);
      NcclBuffer other = std::move(buffer);
      EXPECT_TRUE(other.tensor().is_same(tensor));
      EXPECT_EQ(fake.buffers(), 1);
      other = group.register_buffer(host_ones(50));
      EXPECT_EQ(fake.buffers(), 1);
    }
    EXPECT_EQ(fake.buffers(), 0);
    EXPECT_EQ(fake.count("ncclCommRegister"), fake.count("ncclCommDeregister"));
    expect_error<DeviceError>([&] { (void)group.register_buffer(tensor.to(kCPU)); }, "host:0");
  });
}

TEST(NcclGroup, ABufferMayOutliveItsGroup) {
  FakeNccl fake;
  NcclBuffer kept;
  all_nccl_ranks(fake, {.size = 1},
                 [&](NcclGroup& group) { kept = group.register_buffer(host_ones(100)); });
  kept = NcclBuffer();
  EXPECT_EQ(fake.count("ncclCommDeregister"), 0) << "of a communicator that is gone";
}

TEST(NcclGroup, AHealthyGroupEndsWithoutAborting) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    group.all_reduce(host_ones(10));
    const auto other = group.subgroup({0, 1, 2}, "other");
    other->all_reduce(host_ones(10));
  });
  EXPECT_EQ(fake.count("ncclCommAbort"), 0);
  EXPECT_EQ(fake.count("ncclCommDestroy"), 6);
  EXPECT_EQ(fake.count("ncclCommFinalize"), 6);
}

}  // namespace
}  // namespace lockstep::dist
