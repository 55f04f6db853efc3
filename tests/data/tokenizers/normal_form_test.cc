#include "data/tokenizers/normal_form.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(NormalForm, JoinsAccentsWithTheLettersBeforeThem) {
  EXPECT_EQ(composed("cafe\u0301 au lait, cafe\u0301"), "caf\u00e9 au lait, caf\u00e9");
  EXPECT_EQ(composed("\u00e7\u0301 a\u0323\u0302"), "\u1e09 \u1ead");
  EXPECT_EQ(composed("\u1112\u1161\u11ab"), "\ud55c") << "Hangul";
  EXPECT_EQ(composed("A\u030a\u212b"), "\u00c5\u00c5") << "a sign that is a letter";
}

TEST(NormalForm, PutsAccentsInOrder) { EXPECT_EQ(composed("q\u0307\u0323"), "q\u0323\u0307"); }

TEST(NormalForm, IsNothingForATextThatIsInIt) {
  for (const char* text :
       {"", "plain", "caf\u00e9", "\u65e5\u672c\u8a9e \u0440\u0443\u0441 \U0001f600", "\u0301",
        "a\n\u0301"}) {
    EXPECT_EQ(composed(text), std::nullopt) << text;
  }
}

TEST(NormalForm, LeavesWhatIsNoUtf8AndChangesTheRest) {
  EXPECT_EQ(composed("\xff\xcc"), std::nullopt);
  EXPECT_EQ(composed("e\u0301 \xf0\x9f e\u0301"), "\u00e9 \xf0\x9f \u00e9");
}

}  // namespace
}  // namespace lockstep::train
