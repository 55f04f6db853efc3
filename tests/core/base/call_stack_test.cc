#include "core/base/call_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace lockstep {
namespace {

__attribute__((noinline)) CallStack here(int skip = 0) {
  const CallStack stack = CallStack::capture(skip);
  asm volatile("" ::: "memory");  // prevents a tail call, which would leave no frame
  return stack;
}

__attribute__((noinline)) CallStack deep(int levels) {
  if (levels == 0) return here();
  CallStack stack = deep(levels - 1);
  asm volatile("" ::: "memory");
  return stack;
}

/// Trip count of loops that the compiler must not unroll, so that all rounds call from one address.
volatile int g_two = 2;

TEST(CallStack, StartsWithTheFunctionThatAskedForIt) {
  const CallStack stack = here();
  ASSERT_GE(stack.size(), 2);
  const CallStack::Frame first = stack.frames()[0];
  EXPECT_EQ(std::filesystem::path(first.file).filename(),
            std::filesystem::read_symlink("/proc/self/exe").filename());
  EXPECT_GT(first.offset, 0u);
}

TEST(CallStack, SkipsInnermostFunctions) {
  CallStack stacks[2];
  for (int skip = 0; skip < g_two; ++skip) stacks[skip] = here(skip);
  const auto whole = stacks[0].frames();
  const auto shorter = stacks[1].frames();
  ASSERT_GE(shorter.size() + 1, whole.size());
  for (size_t i = 1; i < whole.size(); ++i) {
    EXPECT_EQ(to_string(whole[i]), to_string(shorter[i - 1]));
  }
  EXPECT_TRUE(here(1000).size() < CallStack::kMostFrames);
}

TEST(CallStack, LooksUpEachAddressOnceForManyStacks) {
  CallStack::KnownFrames known;
  const CallStack stack = deep(10);
  const auto alone = stack.frames();
  const auto first = stack.frames(known);
  const size_t addresses = known.size();
  EXPECT_LT(addresses, first.size());  // the levels of `deep` return to one address
  const auto again = stack.frames(known);
  EXPECT_EQ(known.size(), addresses);
  ASSERT_EQ(again.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(to_string(again[i]), to_string(alone[i]));
    EXPECT_EQ(to_string(first[i]), to_string(alone[i]));
  }
}

TEST(CallStack, KeepsTheInnermostFramesOfADeepOne) {
  EXPECT_EQ(deep(100).size(), CallStack::kMostFrames);
}

TEST(CallStack, DescriptionHasALineForEachFrame) {
  const CallStack stack = here();
  const std::string text = stack.describe();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), stack.size() - 1);
  EXPECT_THAT(text, testing::StartsWith("    " + to_string(stack.frames()[0])));
  EXPECT_THAT(text, testing::ContainsRegex("\\+0x[0-9a-f]+\\)"));
}

TEST(CallStack, TheCallSiteIsInTheProgram) {
  // The test binary is outside the library, so nothing is left out.
  const CallStack stack = here();
  EXPECT_EQ(stack.outside_library(), stack);
  EXPECT_EQ(stack.call_site(), to_string(stack.frames()[0]));
}

TEST(CallStack, AnEmptyOneHasNothingToSay) {
  const CallStack stack;
  EXPECT_TRUE(stack.empty());
  EXPECT_TRUE(stack.frames().empty());
  EXPECT_EQ(stack.describe(), "");
  EXPECT_EQ(stack.call_site(), "");
}

TEST(CallStack, EqualPlacesAreEqual) {
  CallStack stacks[2];
  for (int i = 0; i < g_two; ++i) stacks[i] = here();
  EXPECT_EQ(stacks[0], stacks[1]);
  EXPECT_NE(stacks[0], deep(1));
}

}  // namespace
}  // namespace lockstep
