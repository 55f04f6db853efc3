#include "core/device/slow_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

/// The path of that name, or one without calls.
SlowPath path(std::string_view what) {
  const std::vector<SlowPath> all = slow_paths();
  const auto found = std::ranges::find(all, what, &SlowPath::what);
  return found == all.end() ? SlowPath{} : *found;
}

TEST(SlowPaths, EachIsToldOnceAndEveryCallOfItIsCounted) {
  const int64_t before = path("products of a test").calls;
  CaptureStderr();
  for (const char* const why : {"no library", "another reason"}) {
    count_slow_path("products of a test", [&] { return std::string(why); });
  }
  count_slow_path("sums of a test", [] { return std::string("no kernel"); });
  const std::string told = GetCapturedStderr();
  if (before == 0) {
    EXPECT_EQ(told, "slow: products of a test: no library\nslow: sums of a test: no kernel\n");
  } else {
    EXPECT_EQ(told, "") << "in a repeated run";
  }
  EXPECT_EQ(path("products of a test").calls, before + 2);
  EXPECT_EQ(path("products of a test").why, "no library");
  EXPECT_EQ(path("sums of a test").why, "no kernel");
}

}  // namespace
}  // namespace lockstep
