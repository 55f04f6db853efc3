// Failures of groups over NCCL: every rank gets the same error, in time, and no communicator leaks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/device/rank_waits.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "dist/flight/flight_log.h"
#include "dist/nccl/nccl_group.h"
#include "tests/core/expect_error.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

/// Expects every rank to fail with an E whose message contains `parts`, long before any timeout of
/// a group.
template <class E, class... Parts>
void expect_all_fail(const FakeNccl& fake, const FakeNcclJob& job,
                     const std::function<void(NcclGroup&)>& body, const Parts&... parts) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_nccl_ranks(fake, job, body);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error) << "a rank did not fail";
    expect_error<E>([&] { std::rethrow_exception(error); }, parts...);
  }
  EXPECT_EQ(fake.alive(), 0);
}

// --- the start -------------------------------------------------------------------------------

TEST(NcclStart, TwoRanksWithOneDeviceAreRefusedOnAll) {
  FakeNccl fake;
  FakeNcclJob job{.size = 3};
  job.identity = [](int rank) { return rank == 1 ? "GPU 0000:1b:00.0" : "GPU 0000:2c:00.0"; };
  expect_all_fail<BackendError>(
      fake, job, [](NcclGroup&) {}, "ranks 0 and 2 both use GPU 0000:2c:00.0", "host:0",
      "a device of its own");
  EXPECT_EQ(fake.count("ncclCommInitRankConfig"), 0) << "NCCL would only hang";
}

TEST(NcclStart, WithoutAnIdentifierAllFailWithItsReason) {
  FakeNccl fake;
  fake.fail_next("ncclGetUniqueId", nccl::Result::kSystemError);
  expect_all_fail<BackendError>(
      fake, {.size = 3}, [](NcclGroup&) {}, "ncclGetUniqueId failed", "fake detail");
}

TEST(NcclStart, WhatOneRankCannotDoFailsAll) {
  FakeNccl fake;
  fake.fail_next("ncclCommInitRankConfig", nccl::Result::kInternalError);
  expect_all_fail<BackendError>(
      fake, {.size = 3}, [](NcclGroup&) {}, "ncclCommInitRankConfig failed");
}

TEST(NcclStart, ARankThatNeverComesIsNamed) {
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  job.options.start_timeout = 500ms;
  std::atomic<bool> over = false;
  job.before = [&](int rank) {
    while (rank == 1 && !over) std::this_thread::sleep_for(1ms);
  };
  job.after = [&](int rank) {
    if (rank == 0) over = true;
  };
  const auto errors = run_nccl_ranks(fake, job, [](NcclGroup&) {});
  ASSERT_TRUE(errors[0]);
  expect_error<TimeoutError>([&] { std::rethrow_exception(errors[0]); }, "rank 1 has not");
}

TEST(NcclStart, NcclThatDoesNotGetReadyIsGivenUp) {
  FakeNccl fake;
  fake.hold_start(true);
  FakeNcclJob job{.size = 2};
  job.options.start_timeout = 400ms;
  expect_all_fail<TimeoutError>(
      fake, job, [](NcclGroup&) {}, "NCCL did not get ready", "group world");
  EXPECT_EQ(fake.count("ncclCommAbort"), 2);
}

TEST(NcclStart, ASplitThatARankCannotDoFailsAll) {
  FakeNccl fake;
  expect_all_fail<BackendError>(
      fake, {.size = 3},
      [&](NcclGroup& group) {
        if (group.rank() == 0) {
          fake.fail_next("ncclCommSplit", nccl::Result::kInternalError);
        }
        group.all_reduce(empty({1}, {DType::kF32, kCPU}).fill_(1)).wait();
        (void)group.subgroup({0, 1, 2}, "all");
      },
      "ncclCommSplit failed");
}

// --- operations ------------------------------------------------------------------------------

TEST(NcclFailure, AnErrorThatNcclReportsAbortsAllRanks) {
  FakeNccl fake;
  std::atomic<int> came = 0;
  expect_all_fail<BackendError>(
      fake, {.size = 3},
      [&](NcclGroup& group) {
        // Rank 1 does not join, so that the other ranks hang in NCCL.
        const Work work = group.rank() == 1 ? Work() : group.all_reduce(host_ones(64));
        if (++came == 3) fake.report(1, nccl::Result::kSystemError);
        if (group.rank() != 1) work.synchronize();
        group.barrier().synchronize();
      },
      "fake trouble", "fake detail");
  EXPECT_EQ(fake.count("ncclCommAbort"), 3) << "each once";
  EXPECT_EQ(fake.count("ncclCommDestroy"), 0);
}

TEST(NcclFailure, ARankThatNcclFindsGoneIsPeerLost) {
  FakeNccl fake;
  std::atomic<int> came = 0;
  expect_all_fail<PeerLostError>(
      fake, {.size = 2},
      [&](NcclGroup& group) {
        const Work work = group.rank() == 0 ? group.all_reduce(host_ones(64)) : Work();
        if (++came == 2) fake.report(0, nccl::Result::kRemoteError);
        work.synchronize();
        group.barrier().synchronize();
      },
      "remote process exited");
}

TEST(NcclFailure, AnOperationThatTakesTooLongIsNamed) {
  FakeNccl fake;
  std::atomic<bool> over = false;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.all_reduce(host_ones(8)).synchronize();
    if (group.rank() == 1) {
      while (!over) std::this_thread::sleep_for(1ms);
      group.barrier().synchronize();
    }
    group.set_timeout(300ms);
    try {
      group.all_reduce(host_ones(64), {ReduceOp::kMax}).synchronize();
    } catch (...) {
      over = true;
      throw;
    }
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<TimeoutError>([&] { std::rethrow_exception(error); },
                               "all_reduce #1 of 64 float32, max in group world", "within 0.3 s");
  }
}

TEST(NcclFailure, TimeDoesNotRunWhileWorkBeforeTheOperationIsNotDone) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    group.set_timeout(1s);
    current_stream(kHostDevice).add_callback([] { std::this_thread::sleep_for(1500ms); });
    group.all_reduce(host_ones(8)).synchronize();
  });
}

TEST(NcclFailure, ADeviceWhoseOperationWaitsForAnotherRankIsKnownToWait) {
  FakeNccl fake;
  const uint64_t before = waits_for_ranks(kHostDevice);
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    while (group.rank() == 1 && waits_for_ranks(kHostDevice) == before) {
      std::this_thread::sleep_for(1ms);
    }
    group.all_reduce(host_ones(8)).synchronize();
  });
}

TEST(NcclFailure, OperationsThatDoNotFitEndWithTheirTime) {
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  expect_all_fail<TimeoutError>(
      fake, job,
      [](NcclGroup& group) {
        group.set_timeout(300ms);
        group.all_reduce(host_ones(10 + group.rank())).synchronize();
      },
      "all_reduce #0");
}

TEST(NcclFailure, CallsThatAreComparedAreToldApart) {
  FakeNccl fake;
  FakeNcclJob job{.size = 3};
  job.options.compare_calls = true;
  expect_all_fail<MismatchError>(
      fake, job,
      [](NcclGroup& group) {
        group.all_reduce(host_ones(4)).wait();
        group.all_reduce(host_ones(group.rank() == 2 ? 11 : 10)).wait();
      },
      "all_reduce #1 of 10 float32", "rank 2 called all_reduce #1 of 11 float32");
}

TEST(NcclFailure, ARankThatDoesNotMakeAComparedCallIsNamed) {
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  job.options.compare_calls = true;
  std::atomic<bool> over = false;
  job.after = [&](int rank) {
    if (rank == 0) over = true;
  };
  const auto errors = run_nccl_ranks(fake, job, [&](NcclGroup& group) {
    group.set_timeout(500ms);
    while (group.rank() == 1 && !over) std::this_thread::sleep_for(1ms);
    if (group.rank() == 0) group.all_reduce(host_ones(4)).wait();
  });
  ASSERT_TRUE(errors[0]);
  expect_error<TimeoutError>([&] { std::rethrow_exception(errors[0]); }, "rank 1 has not");
}

TEST(NcclFailure, AnErrorOfOneRankReachesTheOthersWithItsText) {
  FakeNccl fake;
  const auto errors = run_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    if (group.rank() == 1) {
      group.abort("[data] shard 3 is truncated");
      throw DataError("[data] shard 3 is truncated");
    }
    group.all_reduce(host_ones(64)).synchronize();
  });
  for (const int rank : {0, 2}) {
    expect_error<PeerLostError>([&] { std::rethrow_exception(errors[static_cast<size_t>(rank)]); },
                                "rank 1", "shard 3 is truncated");
  }
}

TEST(NcclFailure, ARankThatUnwindsFromAnExceptionEndsTheOthersOperations) {
  FakeNccl fake;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    if (group.rank() == 0) throw DataError("no data");
    group.all_reduce(host_ones(64)).synchronize();
  });
  expect_error<PeerLostError>([&] { std::rethrow_exception(errors[1]); }, "rank 0");
  EXPECT_EQ(fake.alive(), 0);
}

TEST(NcclFailure, ACallThatNcclRefusesFailsAll) {
  FakeNccl fake;
  expect_all_fail<BackendError>(
      fake, {.size = 2},
      [&](NcclGroup& group) {
        if (group.rank() == 0) fake.fail_next("ncclReduce", nccl::Result::kInvalidUsage);
        group.all_reduce(empty({1}, {DType::kF32, kCPU}).fill_(1)).wait();
        group.reduce(host_ones(64), 0).synchronize();
        group.barrier().synchronize();
      },
      "ncclReduce failed");
}

TEST(NcclFailure, AfterAFailureEveryLaterOperationFailsAlike) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    group.set_timeout(200ms);
    EXPECT_THROW(group.all_reduce(host_ones(10 + group.rank())).synchronize(), TimeoutError);
    EXPECT_THROW(group.barrier().wait(), TimeoutError);
    EXPECT_THROW(group.all_reduce(host_ones(4)).wait(), TimeoutError);
    EXPECT_THROW(group.all_reduce(empty({1}, {DType::kF32, kCPU}).fill_(1)).wait(), TimeoutError);
  });
}

TEST(NcclFailure, TheFlightRecordsTellWhatHung) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("nccl_flight_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  FakeNccl fake;
  FakeNcclJob job{.size = 2};
  job.communicator.flight_folder = folder;
  expect_all_fail<TimeoutError>(
      fake, job,
      [](NcclGroup& group) {
        group.set_timeout(300ms);
        group.all_reduce(host_ones(8)).synchronize();
        group.all_reduce(host_ones(100 + group.rank())).synchronize();
      },
      "all_reduce #1");
  std::vector<FlightLog> logs;
  for (const int rank : {0, 1}) {
    const FlightLog& log = logs.emplace_back(
        read_flight_log(folder / ("flight.rank" + std::to_string(rank) + ".json")));
    std::vector<FlightRecord> records = log.records;
    std::erase_if(records, [](const FlightRecord& record) {
      return std::string(record.group_name) != "world (nccl)";
    });
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].state, FlightRecord::State::kDone);
    EXPECT_NE(records[1].state, FlightRecord::State::kDone);
    EXPECT_EQ(records[1].signature.count, 100 + rank);
  }
  EXPECT_THAT(explain(logs), testing::AllOf(testing::HasSubstr("of 100 float32"),
                                            testing::HasSubstr("of 101 float32")));
  std::filesystem::remove_all(folder);
}

TEST(NcclFailure, AMessageThatNobodyTakesEndsWithItsTime) {
  FakeNccl fake;
  std::atomic<bool> over = false;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.set_timeout(400ms);
    if (group.rank() == 1) {
      while (!over) std::this_thread::sleep_for(1ms);
      return;
    }
    try {
      group.recv(host_ones(8), 1, 3).wait();
    } catch (...) {
      over = true;
      throw;
    }
  });
  expect_error<TimeoutError>([&] { std::rethrow_exception(errors[0]); }, "rank 1");
}

// --- the end ---------------------------------------------------------------------------------

TEST(NcclEnd, WhatIsPendingIsWaitedFor) {
  FakeNccl fake;
  fake.hold_operations(true);
  std::atomic<bool> released = false;
  std::thread release([&] {
    std::this_thread::sleep_for(300ms);
    released = true;
    fake.hold_operations(false);
  });
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    for (int i = 0; i < 5; ++i) group.all_reduce(host_ones(1000));
  });
  EXPECT_TRUE(released);
  release.join();
  EXPECT_EQ(fake.count("ncclCommAbort"), 0);
}

TEST(NcclEnd, WhatHangsEndsWithItsTime) {
  FakeNccl fake;
  fake.hold_operations(true);
  const auto start = std::chrono::steady_clock::now();
  all_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    group.set_timeout(300ms);
    group.all_reduce(host_ones(1000));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  EXPECT_EQ(fake.count("ncclCommAbort"), 2);
}

TEST(NcclEnd, ARankThatFailsMeanwhileIsNotWaitedFor) {
  FakeNccl fake;
  std::atomic<bool> summed = false;
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    group.all_reduce(host_ones(8)).synchronize();
    if (group.rank() == 0) {
      summed = true;
      return;
    }
    // Makes sure that rank 0's sum is done: only the end of its group is tested.
    while (!summed) std::this_thread::sleep_for(1ms);
    throw DataError("no data");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s) << "rank 0 waited for rank 1's end";
  EXPECT_FALSE(errors[0]);
}

// --- shrinking -------------------------------------------------------------------------------

TEST(NcclShrink, TheOthersGoOnWithoutTheRankThatFailed) {
  FakeNccl fake;
  FakeNcclJob job{.size = 4};
  job.options.keep_for_shrink = true;
  auto remaining = thread_communicators(3);
  std::atomic<int> started = 0;
  all_nccl_ranks(fake, job, [&](NcclGroup& group) {
    ++started;
    if (group.rank() == 1) {
      // An earlier abort would end the start of the others' groups.
      while (started < group.size()) std::this_thread::sleep_for(1ms);
      group.abort("a memory error");
      return;
    }
    EXPECT_THROW(group.all_reduce(host_ones(64)).synchronize(), PeerLostError);
    const int rank = group.rank() == 0 ? 0 : group.rank() - 1;
    const auto smaller = group.shrink({1}, std::move(remaining[static_cast<size_t>(rank)]));
    EXPECT_EQ(smaller->size(), 3);
    EXPECT_EQ(smaller->rank(), rank);
    const Tensor tensor = host_ones(5);
    smaller->all_reduce(tensor).wait();
    EXPECT_EQ(tensor.to(kCPU).data<float>()[4], 3);
    EXPECT_THROW(group.all_reduce(tensor), PeerLostError);
  });
}

TEST(NcclShrink, AnOldLibrarySaysThatItCannot) {
  FakeNccl fake;
  fake.missing = {"ncclCommShrink"};
  fake.version = 22105;
  auto remaining = thread_communicators(1);
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    if (group.rank() == 1) return;
    expect_error<BackendError>([&] { (void)group.shrink({1}, remaining[0]); },
                               "expected NCCL 2.27.0 or newer, got 2.21.5");
  });
}

TEST(NcclShrink, RanksThatDoNotFitAreRefused) {
  FakeNccl fake;
  auto remaining = thread_communicators(1);
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    if (group.rank() == 1) return;
    expect_error<DistError>([&] { (void)group.shrink({}, remaining[0]); }, "excluded");
    expect_error<DistError>([&] { (void)group.shrink({0}, remaining[0]); }, "excluded");
    expect_error<DistError>([&] { (void)group.shrink({2}, remaining[0]); }, "excluded");
  });
  auto wrong = thread_communicators(2);
  all_nccl_ranks(fake, {.size = 2}, [&](NcclGroup& group) {
    if (group.rank() == 1) return;
    expect_error<DistError>([&] { (void)group.shrink({1}, wrong[0]); }, "remaining",
                            "communication of 1 ranks");
  });
}

}  // namespace
}  // namespace lockstep::dist
