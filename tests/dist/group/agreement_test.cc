#include "dist/group/agreement.h"

#include <gtest/gtest.h>

#include <string>

#include "dist/group/failure.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

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

}  // namespace
}  // namespace lockstep::dist
