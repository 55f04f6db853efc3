#include "dist/rendezvous/secret.h"

#include <gtest/gtest.h>

namespace lockstep::dist {
namespace {

TEST(Secret, IsLongAndDiffersEachTime) {
  const std::string secret = random_secret();
  EXPECT_EQ(secret.size(), 32U);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(secret, random_secret());
}

TEST(Secret, IsTheSameOnlyWhereAllOfItIs) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* other : {"", "a", "ab", "abcd", "Abc", "abC"}) {
    EXPECT_FALSE(same_secret(other, "abc")) << other;
    EXPECT_FALSE(same_secret("abc", other)) << other;
  }
}

}  // namespace
}  // namespace lockstep::dist
