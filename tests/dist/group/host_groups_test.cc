// Groups whose ranks are threads, with plans as if they were on several hosts: the requirements on
// all groups, the order of sums, and errors.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "dist/group/thread_group.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/group_conformance.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

const std::vector<std::vector<int>>& host_tables() {
  static const std::vector<std::vector<int>> tables = {
      {0, 0, 1, 1}, {0, 1, 0, 1, 1}, {0, 0, 0, 1, 2, 2, 2, 1}};
  return tables;
}

void on_hosts(const std::vector<int>& hosts, const std::function<void(ProcessGroup&)>& body) {
  expect_none(run_thread_ranks(static_cast<int>(hosts.size()), body, {}, hosts));
}

/// Numbers of the cases that do not ask for the order of ranks.
std::vector<size_t> cases_of_any_order() {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < group_cases().size(); ++i) {
    const std::string name = group_cases()[i].name;
    if (name == "SumsAreTakenInTheOrderOfRanks") continue;
    if (name == "SixteenBitsAreSummedInF32AndRoundedOnce") continue;
    numbers.push_back(i);
  }
  return numbers;
}

class HostGroupCases : public testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(HostGroupCases, Hold) {
  const auto [index, table] = GetParam();
  on_hosts(host_tables()[table], group_cases()[index].run);
}

INSTANTIATE_TEST_SUITE_P(Group, HostGroupCases,
                         testing::Combine(testing::ValuesIn(cases_of_any_order()),
                                          testing::Range(size_t{0}, host_tables().size())),
                         [](const auto& info) {
                           return std::string(group_cases()[std::get<0>(info.param)].name) +
                                  "OnHosts" + std::to_string(std::get<1>(info.param));
                         });

/// Values whose sum depends on the order: rank 0 has 1, the others less than half an ulp of it.
Tensor sensitive(int rank, int64_t count) {
  return empty({count}, DType::kF32).fill_(rank == 0 ? 1 : 0x1p-24);
}

TEST(HostGroups, AddOnEachHostFirstAndThenTheHosts) {
  for (const int64_t count : {int64_t{10}, int64_t{100'000}}) {
    on_hosts({0, 0, 1, 1}, [&](ProcessGroup& group) {
      const Tensor tensor = sensitive(group.rank(), count);
      group.all_reduce(tensor).wait();
      // In the order of ranks each of the small values would be lost.
      EXPECT_EQ(tensor.data<float>()[0], 1 + 0x1p-23F);
      EXPECT_EQ(tensor.data<float>()[count - 1], 1 + 0x1p-23F);
    });
  }
}

TEST(HostGroups, SumsHaveTheSameBitsInEveryOperationAndSize) {
  on_hosts({0, 0, 1, 1, 1, 2}, [](ProcessGroup& group) {
    const int64_t part = 30'000, count = part * group.size();
    const Tensor values = empty({count}, DType::kF32);
    for (int64_t i = 0; i < count; ++i) {
      values.data<float>()[i] =
          1.0F / static_cast<float>(1 + (i * 7919 + group.rank() * 104'729) % 1000);
    }
    const auto same = [&](const Tensor& a, const float* b, int64_t elements) {
      return std::memcmp(a.data(), b, static_cast<size_t>(elements) * sizeof(float)) == 0;
    };
    const Tensor whole = empty({count}, DType::kF32).copy_(values);
    group.all_reduce(whole).wait();
    // The first elements as a small tensor, on all ranks and on one.
    const Tensor small = empty({50}, DType::kF32).copy_(slice(values, 0, 0, 50));
    const Tensor rooted = empty({50}, DType::kF32).copy_(small);
    group.all_reduce(small).wait();
    EXPECT_TRUE(same(small, whole.data<float>(), 50));
    group.reduce(rooted, 3).wait();
    EXPECT_EQ(same(rooted, whole.data<float>(), 50), group.rank() == 3);
    const Tensor own = empty({part}, DType::kF32);
    group.reduce_scatter(own, values).wait();
    EXPECT_TRUE(same(own, whole.data<float>() + group.rank() * part, part));
    // No rank has other bits.
    const Tensor all = empty({group.size(), count}, DType::kF32);
    group.all_gather(all, whole).wait();
    for (int rank = 0; rank < group.size(); ++rank) {
      EXPECT_TRUE(same(whole, all.data<float>() + rank * count, count));
    }
  });
}

/// Expects every rank to fail, long before a timeout, with an E whose message contains `parts`.
template <class E, class... Parts>
void expect_hosts_fail(const std::function<void(ProcessGroup&)>& body, const Parts&... parts) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_thread_ranks(4, body, {}, {0, 0, 1, 1});
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error) << "a rank did not fail";
    expect_error<E>([&] { std::rethrow_exception(error); }, parts...);
  }
}

TEST(HostGroups, AnotherSizeOnOneRankFailsOnAll) {
  const auto body = [](int64_t count) {
    return [count](ProcessGroup& group) {
      group.all_reduce(cpu_ones(group.rank() == 3 ? count + 1 : count)).wait();
      group.barrier().wait();
    };
  };
  expect_hosts_fail<MismatchError>(body(64), "all_reduce", "of 64 float32", "of 65 float32");
  expect_hosts_fail<MismatchError>(body(100'000), "of 100,000 float32", "of 100,001 float32");
}

TEST(HostGroups, ARankThatFailsEndsTheOthersWithItsWords) {
  const auto errors = run_thread_ranks(4,
                                       [](ProcessGroup& group) {
                                         group.all_reduce(cpu_ones(100'000)).wait();
                                         if (group.rank() == 3)
                                           throw DataError("[shards] a file ends early.");
                                         group.all_reduce(cpu_ones(100'000)).wait();
                                       },
                                       {}, {0, 0, 1, 1});
  for (size_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(errors[rank]);
    expect_error<PeerLostError>([&] { std::rethrow_exception(errors[rank]); }, "rank 3",
                                "a file ends early");
  }
}

TEST(HostGroups, ARankThatNeverComesIsNamedByTheTimeout) {
  for (const int64_t count : {int64_t{64}, int64_t{100'000}}) {
    std::atomic<bool> over = false;
    const auto errors = run_thread_ranks(4,
                                         [&](ProcessGroup& group) {
                                           group.barrier().wait();
                                           if (group.rank() == 3) {
                                             while (!over) std::this_thread::sleep_for(1ms);
                                             group.barrier().wait();
                                           }
                                           group.set_timeout(600ms);
                                           try {
                                             group.all_reduce(cpu_ones(count)).wait();
                                           } catch (...) {
                                             over = true;
                                             throw;
                                           }
                                         },
                                         {}, {0, 0, 1, 1});
    for (const size_t rank : {0, 1, 2}) {
      expect_error<TimeoutError>([&] { std::rethrow_exception(errors[rank]); }, "all_reduce #1",
                                 "rank 3");
    }
    EXPECT_TRUE(errors[3]);
  }
}

TEST(HostGroups, TablesOfAnotherSizeAreRefused) {
  expect_error<DistError>([] { thread_group(3, {}, {0, 1}); }, "hosts", "3 ranks");
}

}  // namespace
}  // namespace lockstep::dist
