// Groups over a fake NCCL: what they record and say, and when they wait.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "dist/flight/flight_log.h"
#include "dist/nccl/nccl_group.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(NcclGroupDetails, ItsStartAndItsFlightFolderAreTheJobs) {
  const train::TemporaryDirectory folder;
  FakeNccl fake;
  std::mutex lock;
  std::set<std::string> starts;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    {
      const std::lock_guard guard(lock);
      starts.insert(group.start_id());
    }
    EXPECT_EQ(group.bytes_sent(), std::nullopt);
    group.set_flight_folder(folder.path());
    for (const auto& [ranks, name] : {std::pair(std::vector{0, 1}, "first"), {{1, 0}, "second"}}) {
      EXPECT_NE(group.subgroup(ranks, name), nullptr);
    }
    group.all_reduce(std::vector<Tensor>{host_ones(1), host_ones(2), host_ones(3)}).synchronize();
    const Tensor tensor = host_ones(4);
    if (group.rank() == 0) group.send(tensor, 1, 7).wait();
    if (group.rank() == 1) group.recv(tensor, 0, 7).wait();
    group.barrier().synchronize();
    if (group.rank() == 1) throw DataError("no data");
    group.all_reduce(host_ones(5)).synchronize();
  });
  EXPECT_EQ(starts.size(), 1u);
  EXPECT_NE(*starts.begin(), "");
  EXPECT_THROW(std::rethrow_exception(errors[1]), DataError);
  expect_error<PeerLostError>([&] { std::rethrow_exception(errors[0]); },
                              "an error on this rank ended the group \"world\"");

  const FlightLog log = read_flight_log(folder / "flight.rank0.json");
  std::set<uint64_t> ids;
  std::vector<std::string> names;
  for (const FlightGroup& each : log.groups) {
    if (!each.name.ends_with(" (nccl)")) continue;
    ids.insert(each.id);
    names.push_back(each.name);
    EXPECT_EQ(each.ranks, each.name == "second (nccl)" ? std::vector({1, 0}) : std::vector({0, 1}));
  }
  EXPECT_THAT(names, ElementsAre("world (nccl)", "first (nccl)", "second (nccl)"));
  EXPECT_EQ(ids.size(), 3u) << "each has an id of its own";
  std::vector<uint64_t> sequences;
  std::vector<uint32_t> tensors;
  std::vector<uint32_t> tags;
  for (const FlightRecord& each : log.records) {
    if (std::string(each.group_name) != "world (nccl)") continue;
    sequences.push_back(each.signature.sequence);
    tensors.push_back(each.tensors);
    tags.push_back(each.user_tag);
  }
  // Three coalesced sums, a message, a barrier, and the last sum unless it came after the failure.
  for (auto* const each : {&tensors, &tags}) each->resize(5);
  sequences.resize(5);
  EXPECT_THAT(sequences, ElementsAre(0, 1, 2, 0, 3));
  EXPECT_THAT(tensors, ElementsAre(3, 3, 3, 1, 1));
  EXPECT_THAT(tags, ElementsAre(0, 0, 0, 7, 0));
}

TEST(NcclGroupDetails, MessagesAreNumberedByDirectionPeerAndTag) {
  FakeNccl fake;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    const Tensor tensor = host_ones(10);
    const auto exchange = [&](int tag, int64_t expected) {
      if (group.rank() == 0) group.send(tensor, 1, tag).wait();
      if (group.rank() == 1) group.recv(host_ones(expected), 0, tag).wait();
    };
    exchange(7, 10);
    exchange(8, 10);
    exchange(7, 20);
  });
  expect_error<MismatchError>([&] { std::rethrow_exception(errors[1]); },
                              "[recv] recv #1 of 20 float32 from rank 0 in group world: rank 0 "
                              "sends 10 elements of float32. Both sides must name one size and "
                              "dtype.");
}

TEST(NcclGroupDetails, ACoalescedCallIsNamedByItsFirstOperation) {
  FakeNccl fake;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    group.set_timeout(300ms);
    const int64_t more = group.rank();
    group.all_reduce(std::vector<Tensor>{host_ones(4), host_ones(5 + more), host_ones(6)})
        .synchronize();
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<TimeoutError>(
        [&] { std::rethrow_exception(error); },
        "[all_reduce] all_reduce #0 of 4 float32, sum in group world (with 2 more) did not end "
        "within 0.3 s: not all ranks have come to it, or their data does not arrive. `lockstep "
        "trace` shows what each rank did. Its time is set with the group's timeout.");
  }
}

TEST(NcclGroupDetails, AnOperationThatNcclDoesNotLaunchIsNamed) {
  FakeNccl fake;
  std::barrier both(2, [&]() noexcept { fake.hold_start(true); });
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.set_timeout(300ms);
    both.arrive_and_wait();
    group.all_reduce(host_ones(4)).wait();
    ADD_FAILURE() << "the wait returned";
  });
  fake.hold_start(false);
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<TimeoutError>([&] { std::rethrow_exception(error); },
                               "[all_reduce] all_reduce #0 of 4 float32, sum in group world: NCCL "
                               "did not get ready");
  }
}

TEST(NcclGroupDetails, ASubgroupThatNcclDoesNotMakeIsNamedAndOthersHaveTheTimeout) {
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  job.options.start_timeout = 500ms;
  std::barrier both(2, [&]() noexcept { fake.hold_start(true); });
  const auto errors = run_nccl_ranks(fake, job, [&](NcclGroup& group) {
    group.set_timeout(7s);
    const auto first = group.subgroup({0, 1}, "first");
    EXPECT_EQ(first->timeout(), 7s);
    group.barrier().synchronize();
    both.arrive_and_wait();
    (void)group.subgroup({0, 1}, "second");
  });
  fake.hold_start(false);
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<TimeoutError>([&] { std::rethrow_exception(error); },
                               "[subgroup] group second: NCCL did not get ready");
  }
}

TEST(NcclGroupDetails, ABarrierIsWaitedForOnTheHost) {
  FakeNccl fake;
  fake.hold_operations(true);
  std::atomic<bool> released = false;
  std::thread release([&] {
    std::this_thread::sleep_for(50ms);
    released = true;
    fake.hold_operations(false);
  });
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.barrier().wait();
    EXPECT_TRUE(released) << "wait returned before the barrier had ended";
  });
  release.join();
}

TEST(NcclGroupDetails, CommunicatorsOfMessagesEndWithTheGroup) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    const Tensor tensor = host_ones(4);
    if (group.rank() == 0) group.send(tensor, 1).wait();
    if (group.rank() == 1) group.recv(tensor, 0).wait();
  });
  // The group's and that of the messages, on each rank.
  EXPECT_EQ(fake.count("ncclCommFinalize"), 4);
  EXPECT_EQ(fake.count("ncclCommDestroy"), 4);
  EXPECT_EQ(fake.count("ncclCommAbort"), 0);
}

TEST(NcclGroupDetails, AMessageThatNcclDoesNotConnectIsNamed) {
  FakeNccl fake;
  std::barrier both(2, [&]() noexcept { fake.hold_start(true); });
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.set_timeout(300ms);
    both.arrive_and_wait();
    const Tensor tensor = host_ones(4);
    if (group.rank() == 0) group.send(tensor, 1).wait();
    if (group.rank() == 1) group.recv(tensor, 0).wait();
  });
  fake.hold_start(false);
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<TimeoutError>([&] { std::rethrow_exception(error); }, "#0 of 4 float32",
                               "NCCL did not connect with rank", "within 0.3 s");
  }
}

TEST(NcclGroupDetails, OnlyDenseTensorsOfTheDeviceAreRegistered) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 1}, [](NcclGroup& group) {
    expect_error<DeviceError>([&] { (void)group.register_buffer(Tensor()); },
                              "[register_buffer] expected a tensor on host:0, got none");
    expect_error<ShapeError>(
        [&] {
          (void)group.register_buffer(host_ones(6).view({2, 3}).t());
        },
        "[register_buffer] expected a dense, row-major tensor, got sizes [3, 2] with strides "
        "[1, 3]");
  });
  EXPECT_EQ(fake.count("ncclCommRegister"), 0);
}

TEST(NcclGroupDetails, ABufferOfAFailedGroupIsOfNoUse) {
  FakeNccl fake;
  NcclBuffer kept;
  (void)run_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
    kept = group.register_buffer(host_ones(100));
    group.abort("no luck");
  });
  EXPECT_EQ(fake.alive(), 0) << "the communicator is gone although the buffer is there";
  kept = NcclBuffer();
  EXPECT_EQ(fake.count("ncclCommDeregister"), 0);
}

TEST(NcclGroupDetails, WhatNcclRefusesIsRecordedAsFailed) {
  const train::TemporaryDirectory folder;
  FakeNccl fake;
  FakeNcclJob job{.size = 1};
  job.communicator.flight_folder = folder.path();
  const auto errors = run_nccl_ranks(fake, job, [&](NcclGroup& group) {
    fake.fail_next("ncclAllReduce", nccl::Result::kInvalidUsage);
    try {
      group.all_reduce(host_ones(4)).wait();
    } catch (const BackendError&) {
      group.set_flight_folder(folder / "after");
      throw;
    }
  });
  ASSERT_TRUE(errors[0]);
  const FlightLog log = read_flight_log(folder / "flight.rank0.json");
  EXPECT_THAT(log.reason, HasSubstr("ncclAllReduce failed"));
}

TEST(NcclGroupDetails, AMessageThatWaitsEndsWhenTheGroupIsShrunk) {
  FakeNccl fake;
  auto remaining = thread_communicators(1);
  std::atomic<bool> shrunk = false;
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    if (group.rank() == 1) {
      while (!shrunk) std::this_thread::sleep_for(1ms);
      return;
    }
    group.set_timeout(2s);
    const Work never = group.recv(host_ones(4), 1);
    const auto smaller = group.shrink({1}, remaining[0]);
    shrunk = true;
    EXPECT_EQ(smaller->timeout(), 2s);
    expect_error<DistError>([&] { never.wait(); }, "[nccl] the group has been shrunk");
    expect_error<DistError>([&] { group.all_reduce(host_ones(4)); },
                            "[world] the group has been shrunk: use the one that came of it");
    expect_error<DistError>([&] { (void)group.shrink({1}, remaining[0]); },
                            "[shrink] the group has been shrunk already");
    smaller->all_reduce(host_ones(4)).synchronize();
  });
}

TEST(NcclGroupDetails, ShrinkNamesWhatDoesNotFit) {
  FakeNccl fake;
  auto remaining = thread_communicators(2);
  all_nccl_ranks(fake, {.size = 3}, [&](NcclGroup& group) {
    if (group.rank() != 1) return;
    const std::vector<std::vector<int>> bad = {{}, {-1}, {3}, {1}, {0, 0}, {2, 0, 2}};
    for (const auto& excluded : bad) {
      expect_error<DistError>([&] { (void)group.shrink(excluded, remaining[0]); },
                              "[shrink] excluded: expected different ranks of 0 to 2, at least "
                              "one, and not this one, 1.");
    }
    expect_error<DistError>([&] { (void)group.shrink({0}, remaining[1]); },
                            "[shrink] remaining: expected the communication of 2 ranks, and this "
                            "one as rank 0, got 2 and 1.");
    expect_error<DistError>(
        [&] {
          (void)group.shrink({0, 2}, remaining[0]);
        },
        "expected the communication of 1 ranks, and this one as rank 0, got 2 "
        "and 0.");
  });
}

}  // namespace
}  // namespace lockstep::dist
