// Groups whose ranks are threads: the requirements on all groups, and errors when ranks call
// different operations or end early.

#include "dist/group/thread_group.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/device/watched_memory.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/group_conformance.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

class ThreadGroupCases : public testing::TestWithParam<std::tuple<size_t, int>> {};

TEST_P(ThreadGroupCases, Hold) {
  const auto [index, size] = GetParam();
  all_ranks(size, group_cases()[index].run);
}

INSTANTIATE_TEST_SUITE_P(Group, ThreadGroupCases,
                         testing::Combine(testing::Range(size_t{0}, group_cases().size()),
                                          testing::Values(1, 2, 3, 4, 6, 8)),
                         [](const auto& info) {
                           return std::string(group_cases()[std::get<0>(info.param)].name) + "By" +
                                  std::to_string(std::get<1>(info.param));
                         });

/// Expects every rank to fail, long before a timeout, with an E whose message contains `parts`.
template <class E, class... Parts>
void expect_all_fail(int size, const std::function<void(ProcessGroup&)>& body,
                     const Parts&... parts) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_thread_ranks(size, body);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error) << "a rank did not fail";
    expect_error<E>([&] { std::rethrow_exception(error); }, parts...);
  }
}

TEST(ThreadGroup, AnotherSizeOnOneRankFailsOnBoth) {
  expect_all_fail<MismatchError>(
      2, [](ProcessGroup& group) { group.all_reduce(cpu_ones(10 + group.rank())).wait(); },
      "operation #0 of group world", "all_reduce", "of 10 float32", "of 11 float32");
}

TEST(ThreadGroup, AnotherDTypeOfAsManyBytesFailsOnAll) {
  expect_all_fail<MismatchError>(
      3,
      [](ProcessGroup& group) {
        group.all_reduce(cpu_ones(64, group.rank() == 2 ? DType::kI32 : DType::kF32)).wait();
      },
      "int32", "float32");
}

TEST(ThreadGroup, AnotherReductionFailsOnAll) {
  expect_all_fail<MismatchError>(
      2,
      [](ProcessGroup& group) {
        group.all_reduce(cpu_ones(64), {group.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax})
            .wait();
      },
      "sum", "max");
}

TEST(ThreadGroup, AnotherDealOfTheSameLeavesFailsOnAll) {
  const auto called_with = [](int rank) {
    // Rank 2 has one leaf of eight in both.
    const std::vector<int64_t> counts =
        rank == 0 ? std::vector<int64_t>{4, 3, 1} : std::vector<int64_t>{3, 4, 1};
    return LeafDeal::of_counts(counts);
  };
  const std::string first = fmt::format("deal {:016x}", called_with(0).identity());
  const std::string others = fmt::format("deal {:016x}", called_with(1).identity());
  expect_all_fail<MismatchError>(
      3,
      [&](ProcessGroup& group) {
        const LeafDeal deal = called_with(group.rank());
        const auto rows = std::ssize(subtrees(deal.of(group.rank())));
        const Tensor sums = cpu_ones(rows * 10).view({rows, 10});
        group.tree_all_reduce(cpu_ones(10), sums, deal).wait();
      },
      "sum of 8 leaves in", first, others);
}

TEST(ThreadGroup, AnotherOperationFailsOnAll) {
  expect_all_fail<MismatchError>(
      4,
      [](ProcessGroup& group) {
        if (group.rank() == 3) {
          group.broadcast(cpu_ones(64), 0).wait();
        } else {
          group.all_reduce(cpu_ones(64)).wait();
        }
        group.barrier().wait();
      },
      "broadcast", "all_reduce");
}

TEST(ThreadGroup, AnotherRootFailsOnAll) {
  expect_all_fail<MismatchError>(
      2,
      [](ProcessGroup& group) {
        group.broadcast(cpu_ones(64), group.rank()).wait();
        group.barrier().wait();
      },
      "broadcast");
}

TEST(ThreadGroup, MessagesOfOtherSizesThanExpectedFail) {
  expect_all_fail<MismatchError>(
      2,
      [](ProcessGroup& group) {
        if (group.rank() == 0) {
          group.send(cpu_ones(10), 1).wait();
        } else {
          group.recv(cpu_ones(20), 0).wait();
        }
        group.barrier().wait();
      },
      "send #0 of 10 float32", "of 20 float32");
}

TEST(ThreadGroup, PartsOfAllToAllThatDoNotFitFail) {
  expect_all_fail<MismatchError>(
      2,
      [](ProcessGroup& group) {
        const std::vector<int64_t> mine = {1, 2};  // rank 1 sends 1, rank 0 expects 2
        group.all_to_all(cpu_ones(3), cpu_ones(3), mine, mine).wait();
        group.barrier().wait();
      },
      "all_to_all");
}

TEST(ThreadGroup, ARankThatNeverComesIsNamedByTheTimeout) {
  std::atomic<bool> over = false;
  const auto errors = run_thread_ranks(3, [&](ProcessGroup& group) {
    group.barrier().wait();
    if (group.rank() == 1) {
      while (!over) std::this_thread::sleep_for(1ms);
      group.barrier().wait();
    }
    group.set_timeout(600ms);
    try {
      group.all_reduce(cpu_ones(64)).wait();
    } catch (...) {
      over = true;
      throw;
    }
  });
  for (const int rank : {0, 2}) {
    expect_error<TimeoutError>([&] { std::rethrow_exception(errors[static_cast<size_t>(rank)]); },
                               "all_reduce #1", "group world",
                               "rank 1 has not come to it: the last it called is #0");
  }
  EXPECT_TRUE(errors[1]);
}

TEST(ThreadGroup, WaitsThatCrossAreToldApart) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    group.set_timeout(700ms);
    const auto other = group.subgroup({0, 1}, "other");
    ProcessGroup& first = group.rank() == 0 ? group : *other;
    ProcessGroup& second = group.rank() == 0 ? *other : group;
    first.all_reduce(cpu_ones(8)).wait();
    second.all_reduce(cpu_ones(8)).wait();
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<TimeoutError>([&] { std::rethrow_exception(error); }, "has not");
  }
}

TEST(ThreadGroup, AnErrorOfOneRankReachesTheOthersWithItsText) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_thread_ranks(3, [](ProcessGroup& group) {
    if (group.rank() == 1) {
      group.abort("[data] shard 3 is truncated");
      throw DataError("[data] shard 3 is truncated");
    }
    group.all_reduce(cpu_ones(64)).wait();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  for (const int rank : {0, 2}) {
    expect_error<PeerLostError>([&] { std::rethrow_exception(errors[static_cast<size_t>(rank)]); },
                                "rank 1", "shard 3 is truncated");
  }
}

TEST(ThreadGroup, ARankThatUnwindsFromAnExceptionEndsTheOthersOperations) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    if (group.rank() == 0) throw DataError("no data");
    group.all_reduce(cpu_ones(64)).wait();
  });
  expect_error<PeerLostError>([&] { std::rethrow_exception(errors[1]); }, "rank 0");
}

TEST(ThreadGroup, ARankThatEndsEarlyIsNamed) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    group.barrier().wait();
    if (group.rank() == 1) group.all_reduce(cpu_ones(64)).wait();
  });
  expect_error<PeerLostError>([&] { std::rethrow_exception(errors[1]); }, "rank 0");
  EXPECT_FALSE(errors[0]);
}

TEST(ThreadGroup, AfterAFailureEveryLaterOperationFailsAlike) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    EXPECT_THROW(group.all_reduce(cpu_ones(10 + group.rank())).wait(), MismatchError);
    EXPECT_THROW(group.barrier().wait(), MismatchError);
    EXPECT_THROW(group.all_reduce(cpu_ones(4)).wait(), MismatchError);
  });
  for (const std::exception_ptr& error : errors) EXPECT_FALSE(error);
}

TEST(ThreadGroup, ArgumentsThatCannotBeRightAreRefusedBeforeAnythingIsSent) {
  all_ranks(2, [](ProcessGroup& group) {
    expect_error<ShapeError>([&] { group.all_reduce(cpu_ones(6).view({2, 3}).t()); }, "row-major");
    expect_error<ShapeError>([&] { group.all_reduce(Tensor()); }, "undefined");
    expect_error<ShapeError>([&] { group.all_gather(cpu_ones(3), cpu_ones(2)); }, "4 elements");
    expect_error<ShapeError>([&] { group.reduce_scatter(cpu_ones(3), cpu_ones(2)); }, "6 elements");
    expect_error<DTypeError>([&] { group.all_gather(cpu_ones(4, DType::kI32), cpu_ones(2)); },
                             "int32");
    expect_error<DTypeError>([&] { group.all_reduce(cpu_ones(4, DType::kBool)); }, "all_reduce");
    expect_error<DistError>([&] { group.broadcast(cpu_ones(4), 2); }, "root", "got 2");
    expect_error<DistError>([&] { group.send(cpu_ones(4), group.rank()); }, "another rank");
    expect_error<DistError>([&] { group.send(cpu_ones(4), 1 - group.rank(), 1 << 16); }, "tag");
    expect_error<ShapeError>([&] { group.all_to_all(cpu_ones(4), cpu_ones(3)); }, "input_splits");
    expect_error<DeviceError>([&] { group.all_reduce(empty({2}, {DType::kF32, kMeta})); }, "meta");
    expect_error<DistError>([&] { (void)group.subgroup({0, 0}, "twice"); }, "ranks");
    const Tensor tensor = cpu_ones(4);
    group.all_reduce(tensor).wait();
    EXPECT_EQ(tensor.data<float>()[0], 2);
  });
}

TEST(ThreadGroup, SubgroupsThatRanksAskForDifferentlyAreRefused) {
  const auto errors =
      run_thread_ranks(2, [](ProcessGroup& group) { (void)group.subgroup({group.rank()}, "own"); });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    expect_error<MismatchError>([&] { std::rethrow_exception(error); }, "different groups");
  }
}

TEST(ThreadGroup, ResultsCountAsChangesInPlace) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor tensor = cpu_ones(4);
    const uint32_t before = tensor.version();
    group.all_reduce(tensor).wait();
    EXPECT_EQ(tensor.version(), before + 1);
  });
}

TEST(ThreadGroup, EveryOperationCountsAsAChangeOfWhatItWritesAlone) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor one = cpu_ones(4), two = cpu_ones(8), more = cpu_ones(8);
    // The changes that a call makes to the three tensors.
    const auto changes = [&](const std::function<Work()>& call) {
      const std::vector<uint32_t> before{one.version(), two.version(), more.version()};
      call().wait();
      return std::vector<uint32_t>{one.version() - before[0], two.version() - before[1],
                                   more.version() - before[2]};
    };
    using Changes = std::vector<uint32_t>;
    const int other = 1 - group.rank();
    const bool sends = group.rank() == 0;
    EXPECT_EQ(changes([&] { return sends ? group.send(one, other) : group.recv(one, other); }),
              (Changes{sends ? 0u : 1u, 0, 0}));
    EXPECT_EQ(changes([&] { return group.broadcast(one, 0); }), (Changes{1, 0, 0}));
    EXPECT_EQ(changes([&] { return group.reduce(one, 0); }), (Changes{1, 0, 0}));
    EXPECT_EQ(changes([&] { return group.all_gather(two, one); }), (Changes{0, 1, 0}));
    EXPECT_EQ(changes([&] { return group.reduce_scatter(one, two); }), (Changes{1, 0, 0}));
    EXPECT_EQ(changes([&] { return group.all_to_all(more, two); }), (Changes{0, 0, 1}));
    EXPECT_EQ(changes([&] {
                return group.tree_all_reduce(one, two.view({2, 4}).slice(0, 0, 1), 2);
              }),
              (Changes{1, 0, 0}));
  });
}

TEST(ThreadGroup, AMessageIntoATensorThatBackwardNeedsIsAnErrorThere) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor saved = cpu_ones(4);
    const Tensor x = cpu_ones(4).set_requires_grad();
    const Tensor loss = sum(x * saved);
    if (group.rank() == 0) {
      group.send(saved, 1).wait();
      EXPECT_NO_THROW(loss.backward());
    } else {
      group.recv(saved, 0).wait();
      EXPECT_THROW(loss.backward(), AutogradError);
    }
  });
}

TEST(ThreadGroup, TensorsMayGoBeforeTheirOperationIsDone) {
  all_ranks(3, [](ProcessGroup& group) {
    constexpr int kOperations = 20;
    WatchedMemory memory(kCPU);
    std::atomic<int> with_the_sum = 0;
    memory.before_free = [&](const Block& block) {
      const auto* const values = static_cast<const float*>(block.data);
      if (std::all_of(values, values + 30'000, [](float each) { return each == 3; })) {
        ++with_the_sum;
      }
    };
    std::vector<Work> works;
    for (int i = 0; i < kOperations; ++i) {
      works.push_back(group.all_reduce(memory.vector(30'000).fill_(1)));
    }
    for (const Work& work : works) work.wait();
    EXPECT_EQ(memory.freed(), kOperations) << "an operation that is done keeps no tensor";
    EXPECT_EQ(with_the_sum, kOperations) << "memory was freed while its operation ran";
  });
}

TEST(ThreadGroup, WorkOfNothingIsDone) {
  EXPECT_TRUE(Work().is_completed());
  Work().wait();
  all_ranks(2, [](ProcessGroup& group) {
    EXPECT_TRUE(group.all_reduce(std::vector<Tensor>{}).is_completed());
  });
}

TEST(ThreadGroup, SizesBelowOneAreRefused) {
  expect_error<DistError>([] { (void)thread_group(0); }, "at least 1 rank");
}

}  // namespace
}  // namespace lockstep::dist
