#include "core/base/scoped_value.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace lockstep {
namespace {

TEST(ScopedValue, TheVariableHasTheValueBeforeAgainAtTheEndOfTheScope) {
  std::string variable = "first";
  {
    const ScopedValue<std::string> outer(variable, "second");
    EXPECT_EQ(variable, "second");
    EXPECT_EQ(outer.outer(), "first");
    {
      const ScopedValue<std::string> inner(variable, "third");
      EXPECT_EQ(variable, "third");
    }
    EXPECT_EQ(variable, "second");
  }
  EXPECT_EQ(variable, "first");
}

TEST(ScopedValue, AnExceptionEndsIt) {
  int variable = 1;
  try {
    const ScopedValue<int> guard(variable, 2);
    throw std::runtime_error("");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(variable, 1);
}

}  // namespace
}  // namespace lockstep
