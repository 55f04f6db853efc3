#include "dist/group/together.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
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

}  // namespace
}  // namespace lockstep::dist
