#include "dist/rendezvous/core_budget.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using Cores = std::vector<int>;

class CoreBudgetTest : public testing::Test {
 protected:
  void put(std::string_view name, std::string_view content) {
    std::filesystem::create_directories((root_ / name).parent_path());
    train::put_file(root_ / name, content);
  }
  void allow(std::string_view cores) {
    put("proc/self/status",
        "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t" + std::string(cores) + "\nMems:\t0\n");
  }
  CoreBudget budget() const { return core_budget(root_.path()); }

 private:
  train::TemporaryDirectory root_;
};

TEST_F(CoreBudgetTest, CoresAreThoseOfTheAffinityMask) {
  allow("0-3,8");
  EXPECT_EQ(budget().cores, (Cores{0, 1, 2, 3, 8}));
  EXPECT_EQ(budget().usable(), 5);
}

TEST_F(CoreBudgetTest, WithoutTheFileTheSystemIsAsked) {
  EXPECT_GE(budget().cores.size(), 1u);
  EXPECT_EQ(budget().cores, core_budget().cores);
}

TEST_F(CoreBudgetTest, AQuotaOfVersion2IsRoundedUpAndTheTightestGroupCounts) {
  allow("0-7");
  put("proc/self/cgroup", "0::/jobs/one\n");
  put("sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
  EXPECT_EQ(budget().usable(), 8);
  put("sys/fs/cgroup/jobs/cpu.max", "350000 100000\n");
  EXPECT_EQ(budget().quota, 3.5);
  EXPECT_EQ(budget().usable(), 4);
}

TEST_F(CoreBudgetTest, AQuotaOfVersion1CountsUnlessItIsNone) {
  allow("0-7");
  put("proc/self/cgroup", "4:memory:/x\n2:cpu,cpuacct:/outside/of/here\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(budget().usable(), 2);
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(budget().usable(), 8);
}

TEST_F(CoreBudgetTest, AQuotaBelowOneCoreStillLeavesOne) {
  allow("5");
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(budget().usable(), 1);
  EXPECT_EQ(threads_for_rank(budget(), 4), 1);
}

TEST(ThreadsForRank, RanksThatShareTheCoresDivideThem) {
  const CoreBudget eight{.cores = {0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(threads_for_rank(eight, 1), 8);
  EXPECT_EQ(threads_for_rank(eight, 3), 2);
  EXPECT_EQ(threads_for_rank(eight, 4), 2);
  EXPECT_EQ(threads_for_rank(eight, 16), 1);
  EXPECT_EQ(threads_for_rank(CoreBudget{.cores = eight.cores, .quota = 5.5}, 2), 3);
}

TEST(ThreadsForRank, RanksBoundToCoresOfTheirOwnKeepThem) {
  const CoreBudget own{.cores = {2, 3}};
  EXPECT_EQ(threads_for_rank(own, std::vector<Cores>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}), 2);
  // Two ranks, each bound to half of the machine.
  const CoreBudget half{.cores = {4, 5, 6, 7}};
  EXPECT_EQ(threads_for_rank(
                half, std::vector<Cores>{{0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5, 6, 7}, {4, 5, 6, 7}}),
            2);
  // The quota applies to all ranks together, whatever cores they are bound to.
  const CoreBudget slow{.cores = {4, 5, 6, 7}, .quota = 2};
  EXPECT_EQ(threads_for_rank(slow, std::vector<Cores>{{0, 1, 2, 3}, {4, 5, 6, 7}}), 1);
}

RC_GTEST_PROP(ThreadsForRankProperty, EqualMasksGiveWhatTheNumberOfRanksGives, ()) {
  const int cores = *rc::gen::inRange(1, 200);
  const int ranks = *rc::gen::inRange(1, 40);
  CoreBudget budget;
  for (int core = 0; core < cores; ++core) budget.cores.push_back(core);
  const std::vector<Cores> masks(static_cast<size_t>(ranks), budget.cores);
  const int threads = threads_for_rank(budget, ranks);
  RC_ASSERT(threads_for_rank(budget, masks) == threads);
  RC_ASSERT(threads == 1 || threads * ranks <= cores);
}

TEST(DescribeThreads, SaysWhyThereAreSoMany) {
  CoreBudget budget{.cores = {0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(describe_threads(2, budget, 4),
            "2 threads a rank: 8 cores allowed, 4 ranks on this node");
  EXPECT_EQ(describe_threads(1, {.cores = {3}}, 1),
            "1 thread a rank: 1 core allowed, 1 rank on this node");
  budget.quota = 3.5;
  EXPECT_EQ(describe_threads(4, budget, 1),
            "4 threads a rank: 4 cores allowed by a quota of 3.5, of 8, 1 rank on this node");
}

TEST(CoreList, IsReadAsLinuxWritesIt) {
  EXPECT_EQ(parse_core_list("0-3,8"), (Cores{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_core_list("7,2,2,1-2"), (Cores{1, 2, 7}));
  EXPECT_EQ(parse_core_list(""), Cores());
}

TEST(CoreList, RunsOfCoresAreWrittenAsRanges) {
  EXPECT_EQ(format_core_list({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(format_core_list({5, 7, 8}), "5,7-8");
  EXPECT_EQ(format_core_list({}), "");
}

TEST(CoreList, RefusesWhatIsNone) {
  for (const char* text :
       {",", "1,", "a", "-1", "1-", "3-2", "1--2", "65536", "0-99999999999", "1 ,2", "0-3:2"}) {
    expect_error<ConfigError>([&] { (void)parse_core_list(text); }, text);
  }
}

TEST(CoreList, RefusalsSayWhatIsWrong) {
  expect_error<ConfigError>([] { (void)parse_core_list("4,a"); },
                            "[cores] \"4,a\" is no list of cores: expected numbers below 65536 and "
                            "ascending ranges, such as 0-3,8.");
  expect_error<ConfigError>([] { (void)parse_core_list("1,3-2"); },
                            "[cores] \"1,3-2\": the range 3-2 descends.");
  EXPECT_EQ(parse_core_list("65535"), Cores{65535});
  EXPECT_EQ(parse_core_list("4-4"), Cores{4});
}

RC_GTEST_PROP(CoreListProperty, WrittenOutReadsBackTheSame, ()) {
  const auto set = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, 300));
  const Cores cores(set.begin(), set.end());
  RC_ASSERT(parse_core_list(format_core_list(cores)) == cores);
}

RC_GTEST_PROP(CoreListProperty, AnyTextIsReadOrRefused, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123,--9 ")));
  try {
    const Cores cores = parse_core_list(text);
    RC_ASSERT(std::ranges::is_sorted(cores));
  } catch (const ConfigError&) {
  }
}

}  // namespace
}  // namespace lockstep::dist
