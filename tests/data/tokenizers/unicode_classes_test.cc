#include "data/tokenizers/unicode_classes.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::train {
namespace {

TEST(UnicodeClasses, AsciiIsAsEveryoneKnowsIt) {
  for (uint32_t c = 0; c < 128; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool number = c >= '0' && c <= '9';
    const bool space = c == ' ' || (c >= 9 && c <= 13);
    EXPECT_EQ(char_class(c) == CharClass::kLetter, letter) << c;
    EXPECT_EQ(char_class(c) == CharClass::kNumber, number) << c;
    EXPECT_EQ(char_class(c) == CharClass::kSpace, space) << c;
  }
}

// Sizes of the classes in Unicode 16.0: DerivedGeneralCategory.txt and PropList.txt.
TEST(UnicodeClasses, ClassesHaveTheSizesOfUnicode16) {
  std::map<CharClass, int> sizes;
  for (uint32_t c = 0; c < 0x110000; ++c) ++sizes[char_class(c)];
  EXPECT_EQ(sizes[CharClass::kLetter], 141028);
  EXPECT_EQ(sizes[CharClass::kNumber], 1911);
  EXPECT_EQ(sizes[CharClass::kSpace], 25);
}

TEST(UnicodeClasses, EndsOfRangesBelongToThem) {
  EXPECT_EQ(char_class(0x4e00), CharClass::kLetter);  // first and last of the unified ideographs
  EXPECT_EQ(char_class(0x9fff), CharClass::kLetter);
  EXPECT_EQ(char_class(0xa48d), CharClass::kOther);  // between the syllables and radicals of Yi
  EXPECT_EQ(char_class(0x7ff), CharClass::kOther);   // last of the direct table: a sign of NKo
  EXPECT_EQ(char_class(0x800), CharClass::kLetter);  // first of the search: Samaritan
  EXPECT_EQ(char_class(0xbd), CharClass::kNumber);   // one half
  EXPECT_EQ(char_class(0x3000), CharClass::kSpace);
  EXPECT_EQ(char_class(0x200b), CharClass::kOther);    // zero width space is no White_Space
  EXPECT_EQ(char_class(0x323af), CharClass::kLetter);  // the last letter of all
  EXPECT_EQ(char_class(0x323b0), CharClass::kOther);
  EXPECT_EQ(char_class(0xffffffff), CharClass::kOther);
}

}  // namespace
}  // namespace lockstep::train
