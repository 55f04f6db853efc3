#include "core/base/utf8.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(Utf8, EveryCodePointRoundTrips) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    append_utf8(c, text);
    const CodePoint point = code_point_at(text, 0);
    ASSERT_TRUE(point.valid) << c;
    ASSERT_EQ(point.value, c);
    ASSERT_EQ(static_cast<size_t>(point.length), text.size());
  }
}

TEST(Utf8, WhatIsInvalidTakesOneByte) {
  for (const char* text : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                           "\xe2\x96", "\xc3", "\xc3\x28", "\xe2\x28\xa1"}) {
    const CodePoint point = code_point_at(text, 0);
    EXPECT_FALSE(point.valid) << text;
    EXPECT_EQ(point.length, 1);
    EXPECT_EQ(point.value, CodePoint::kInvalid);
  }
}

TEST(Utf8, TheFirstInvalidByteIsFoundAtEveryPlace) {
  for (size_t before = 0; before < 20; ++before) {
    for (const std::string valid : {"a", "\u00e9", "\u65e5", "\U0001f600"}) {
      std::string text;
      while (text.size() < before) text += valid;
      EXPECT_EQ(first_invalid_utf8(text), text.size());
      for (const char* invalid : {"\xe9", "\x80", "\xc3", "\xed\xa0\x80", "\xf0\x9f"}) {
        EXPECT_EQ(first_invalid_utf8(text + invalid), text.size());
        EXPECT_EQ(first_invalid_utf8(text + invalid + "twelve bytes"), text.size());
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::train
