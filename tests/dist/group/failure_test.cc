#include "dist/group/failure.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <typeinfo>

#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

template <class E>
void expect_restored() {
  const std::string text = failure_text(E("[all_reduce] no luck"));
  const auto thrown = [&](int rank, int self) {
    try {
      std::rethrow_exception(exception_of({rank, text}, self));
    } catch (const E& error) {
      EXPECT_EQ(typeid(error), typeid(E));
      return std::string(error.what());
    }
  };
  EXPECT_EQ(thrown(3, 3), "[all_reduce] no luck");
  EXPECT_EQ(thrown(3, 0), "[all_reduce] no luck\nTold by rank 3.");
}

TEST(Failure, AnErrorKeepsItsClassAndSaysWhichRankToldIt) {
  expect_restored<MismatchError>();
  expect_restored<TimeoutError>();
  expect_restored<PeerLostError>();
  expect_restored<BackendError>();
  expect_restored<StoppedError>();
  expect_restored<DistError>();
}

TEST(Failure, AnyOtherTextIsThatOfALostRank) {
  const auto thrown = [](int self) { std::rethrow_exception(exception_of({1, "no data"}, self)); };
  expect_error<PeerLostError>([&] { thrown(1); }, "[dist] this rank failed: no data");
  expect_error<PeerLostError>([&] { thrown(0); }, "[dist] rank 1 failed: no data");
}

TEST(Failure, AStopIsToldApart) {
  EXPECT_TRUE(is_stop(std::make_exception_ptr(StoppedError("asked to"))));
  EXPECT_FALSE(is_stop(std::make_exception_ptr(DistError("asked to"))));
  EXPECT_FALSE(is_stop(std::make_exception_ptr(7)));
}

TEST(Failure, TheWordsOfAnErrorAreItsMessage) {
  EXPECT_EQ(words_of(std::make_exception_ptr(std::runtime_error("words"))), "words");
  EXPECT_EQ(words_of(std::make_exception_ptr(7)), "something that is no std::exception");
}

}  // namespace
}  // namespace lockstep::dist
