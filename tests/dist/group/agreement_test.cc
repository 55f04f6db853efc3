#include "dist/group/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/stream.h"
#include "dist/group/failure.h"
#include "dist/group/planning_group.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::HasSubstr;

TEST(RequireAlike, SameLinesInAnyOrderAreNoDifference) {
  EXPECT_NO_THROW(require_alike("start", 0, {"a: 1\nb: 2\n", "b: 2\na: 1\n"}));
  EXPECT_NO_THROW(require_alike("start", 0, {"", ""}));
}

TEST(RequireAlike, TheFirstNameThatDiffersIsToldWithItsValuesAndTheirRanks) {
  const std::string usual = "version: 1\nSHM: 1\nTF32: 0\n";
  const std::string other = "version: 1\nSHM: 0\nTF32: 1\n";
  expect_error<CommonMismatchError>(
      [&] {
        require_alike("start", 2, {usual, usual, other, usual, other});
      },
      "[start] ranks differ in SHM: ranks 0, 1, 3: 1; ranks 2, 4: 0. Start all ranks");
}

TEST(RequireAlike, ALineThatARankLacksOrLeavesEmptyIsADifference) {
  expect_error<CommonMismatchError>(
      [] {
        require_alike("start", 0, {"version: 1\nbuild: x\n", "version: 1\n"});
      },
      "ranks differ in build: rank 0: x; rank 1: not told.");
  expect_error<CommonMismatchError>(
      [] {
        require_alike("start", 0, {"job: \n", "job: 7\n"});
      },
      "ranks differ in job: rank 0: none; rank 1: 7.");
}

TEST(RequireAlike, AllRanksReportTheErrorTogether) {
  try {
    require_alike("start", 2, {"a: 1", "a: 1", "a: 2"});
    FAIL() << "nothing was thrown";
  } catch (const CommonMismatchError& error) {
    EXPECT_EQ(error.rank(), 2);
    EXPECT_EQ(error.size(), 3);
  }
  // A line without a value is a name.
  expect_error<CommonMismatchError>(
      [] {
        require_alike("start", 0, {"flag", "flag: x"});
      },
      "ranks differ in flag: rank 0: none; rank 1: x.");
}

TEST(Agreement, TextsAndValuesComeInTheOrderOfRanks) {
  all_ranks(3, [](ProcessGroup& group) {
    const std::string own(static_cast<size_t>(2 * group.rank()), 'x');
    EXPECT_EQ(all_gather_texts(group, own), (std::vector<std::string>{"", "xx", "xxxx"}));
    EXPECT_EQ(all_gather_texts(group, ""), std::vector<std::string>(3));
    const double rank = group.rank();
    const std::vector<double> values{rank, 1 - rank};
    EXPECT_EQ(all_gather_values(group, values),
              (std::vector<std::vector<double>>{{0, 1}, {1, 0}, {2, -1}}));
    std::vector<double> largest = values;
    largest_of(group, largest);
    EXPECT_EQ(largest, (std::vector<double>{2, 1}));
  });
}

TEST(Agreement, ATextThatDiffersIsToldWithItsFirstOtherLineOnAllRanks) {
  const auto error_of = [](const std::vector<std::string>& texts) {
    const auto errors = run_thread_ranks(3, [&](ProcessGroup& group) {
      require_same(group, "ddp", "model", texts[static_cast<size_t>(group.rank())]);
    });
    EXPECT_EQ(text_of(errors[0]), text_of(errors[1]));
    EXPECT_EQ(text_of(errors[0]), text_of(errors[2]));
    return text_of(errors[0]);
  };
  EXPECT_EQ(error_of({"a\nb\n", "a\nb\n", "a\nb\n"}), "nothing");
  EXPECT_EQ(
      error_of({"a\nb\nc", "a\nb\nc", "a\nx\ny"}),
      "[ddp] rank 2 has another model than rank 0: expected \"b\", got \"x\". Start all ranks "
      "alike.");
  EXPECT_THAT(error_of({"a", "a\nb", "a"}), HasSubstr("expected \"nothing more\", got \"b\""));
  EXPECT_THAT(error_of({"a\nb", "a", "a"}), HasSubstr("expected \"b\", got \"nothing more\""));
}

TEST(Agreement, AStartMayTakeTenMinutesOrAsLongAsOperations) {
  using namespace std::chrono_literals;
  all_ranks(1, [](ProcessGroup& group) {
    group.set_timeout(1s);
    EXPECT_EQ(at_start(group).timeout, 10min);
    group.set_timeout(11min);
    EXPECT_EQ(at_start(group).timeout, 11min);
  });
}

TEST(Agreement, APlanningGroupComparesNothing) {
  PlanningGroup group(1, 4);
  require_same(group, "ddp", "model", "any");
  EXPECT_EQ(group.bytes_sent(), 0u);
}

TEST(Agreement, ValuesOfAnyStridesAndDevicesComeFromTheRoot) {
  all_ranks(2, [](ProcessGroup& group) {
    const Device host = parse_device("host:0");
    const OwnedStream stream(host);
    const StreamGuard guard(stream.get());
    const float own = static_cast<float>(group.rank()) + 1;
    const Tensor dense = empty({2, 3}, DType::kF32).fill_(own);
    const Tensor turned = empty({3, 2}, DType::kF32).fill_(own + 10).t();
    const Tensor device = empty({4}, {DType::kF32, host}).fill_(own + 20);
    const Tensor whole = empty({5}, DType::kI64).fill_(group.rank());
    const Tensor leaf = empty({2}, DType::kF32).fill_(own).set_requires_grad();
    broadcast_values(group, std::vector<Tensor>{dense, turned, device, whole, leaf}, 1);
    EXPECT_EQ(dense.data<float>()[5], 2);
    EXPECT_EQ(turned.contiguous().data<float>()[4], 12);
    EXPECT_EQ(device.to(kCPU).data<float>()[3], 22);
    EXPECT_EQ(whole.data<int64_t>()[4], 1);
    EXPECT_EQ(leaf.detach().data<float>()[1], 2);
    broadcast_values(group, dense.fill_(own));
    EXPECT_EQ(dense.data<float>()[0], 1) << "rank 0 is the root unless another is named";
  });
}

}  // namespace
}  // namespace lockstep::dist
