#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <typeinfo>
#include <vector>

#include "core/base/error.h"

namespace lockstep {

/// Expects `call` to throw exactly an E whose message contains all of `parts`.
template <class E, class F, class... Parts>
void expect_error(F&& call, const Parts&... parts) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const E& error) {
    EXPECT_EQ(typeid(error), typeid(E)) << error.what();
    for (const std::string& part : std::vector<std::string>{std::string(parts)...}) {
      EXPECT_THAT(std::string(error.what()), ::testing::HasSubstr(part));
    }
  }
}

}  // namespace lockstep
