#include "dist/group/together.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

TEST(Together, ReturnsWhatEachRankDidInTheOrderOfRanks) {
  EXPECT_EQ(together(nullptr, [] { return "alone"; }), std::vector<std::string>{"alone"});
  all_ranks(3, [](ProcessGroup& group) {
    const auto texts =
        together(&group, [&] { return std::string(static_cast<size_t>(group.rank()), 'x'); });
    EXPECT_EQ(texts, (std::vector<std::string>{"", "x", "xx"}));
  });
}

/// Ranks 1 and 2 of three throw: rank 1 an E with the words "of rank 1", rank 2 another error.
/// Expects each to throw its own, and rank 0 to throw an `Other` with rank 1's words.
template <class E, class Other>
void expect_told(const std::function<E()>& error) {
  all_ranks(3, [&](ProcessGroup& group) {
    const auto call = [&] {
      (void)together(&group, [&]() -> std::string {
        if (group.rank() == 1) throw error();
        if (group.rank() == 2) throw std::logic_error("of rank 2");
        return "well";
      });
    };
    if (group.rank() == 0) {
      expect_error<Other>(call, std::string("rank 1: ") + error().what());
    } else if (group.rank() == 1) {
      EXPECT_THROW(call(), E);
    } else {
      EXPECT_THROW(call(), std::logic_error);
    }
    // All have come to the end of it: the group goes on.
    group.barrier().wait();
  });
}

TEST(Together, TheFirstErrorIsThrownOnAllRanksInItsClass) {
  expect_told<DataError, DataError>([] { return DataError("of rank 1"); });
  expect_told<CheckpointError, CheckpointError>([] { return CheckpointError("of rank 1"); });
  expect_told<OutOfMemoryError, OutOfMemoryError>([] { return OutOfMemoryError("of rank 1"); });
  expect_told<std::bad_alloc, OutOfMemoryError>([] { return std::bad_alloc(); });
  expect_told<std::runtime_error, Error>([] { return std::runtime_error("of rank 1"); });
}

TEST(Together, AFailureOfTheGroupIsThrownAtOnce) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    (void)together(&group, [&]() -> std::string {
      if (group.rank() == 0) throw BackendError("no connection");
      return "well";
    });
  });
  EXPECT_EQ(text_of(errors[0]), "no connection");
  expect_error<PeerLostError>([&] { std::rethrow_exception(errors[1]); }, "no connection");
}

/// One rank, which keeps how long its operations may take.
class TimedGroup final : public ProcessGroup {
 public:
  TimedGroup() : ProcessGroup(0, 1, "alone") {}
  const char* backend() const noexcept override { return "timed"; }
  std::unique_ptr<ProcessGroup> subgroup(std::vector<int>, std::string) override { return nullptr; }
  std::optional<uint64_t> bytes_sent() const noexcept override { return std::nullopt; }
  void abort(const std::string&) noexcept override {}

  std::vector<std::chrono::milliseconds> timeouts;

 private:
  Work start(Launch launch) override {
    timeouts.push_back(launch.timeout);
    for (const Operation& each : launch.operations) {
      std::memcpy(each.output, each.input, static_cast<size_t>(each.count) * size_of(each.dtype));
    }
    return {};
  }
};

TEST(Together, ARankMayTakeADay) {
  TimedGroup group;
  group.set_timeout(std::chrono::seconds(1));
  EXPECT_EQ(together(&group, [] { return "slow"; }), std::vector<std::string>{"slow"});
  ASSERT_FALSE(group.timeouts.empty());
  for (const std::chrono::milliseconds each : group.timeouts) {
    EXPECT_EQ(each, std::chrono::hours(24));
  }
}

}  // namespace
}  // namespace lockstep::dist
