#include "core/base/terminal_text.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(TerminalText, KeepsTextLineEndsAndTabs) {
  EXPECT_EQ(terminal_text("a\tb\nc\xc3\xa9\xf0\x9f\x98\x80"), "a\tb\nc\xc3\xa9\xf0\x9f\x98\x80");
}

TEST(TerminalText, ShowsControlCharactersAsPictures) {
  EXPECT_EQ(terminal_text("\x1b[2J"), "\xe2\x90\x9b[2J");
  EXPECT_EQ(terminal_text("a\rb\x07"),
            "a\xe2\x90\x8d"
            "b\xe2\x90\x87");
  EXPECT_EQ(terminal_text("\x7f"), "\xe2\x90\xa1");
  EXPECT_EQ(terminal_text("\xc2\x9b"
                          "1m"),
            "\xef\xbf\xbd"
            "1m");  // U+009B, a control sequence
  EXPECT_EQ(terminal_text("\x9b"
                          "1m"),
            "\xef\xbf\xbd"
            "1m");
}

TEST(TerminalText, ShowsBytesThatAreNoTextAsReplacements) {
  EXPECT_EQ(terminal_text("\xff\xc3"), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(TerminalText, JoinsCharactersThatComeInPieces) {
  TerminalText filter;
  EXPECT_EQ(filter.add("a\xf0\x9f"), "a");
  EXPECT_EQ(filter.add("\x98"), "");
  EXPECT_EQ(filter.add("\x80z"), "\xf0\x9f\x98\x80z");
  EXPECT_EQ(filter.add("\xe2\x90"), "");
  EXPECT_EQ(filter.add("b"),
            "\xef\xbf\xbd\xef\xbf\xbd"
            "b");
  EXPECT_EQ(filter.add("\xc3"), "");
  EXPECT_EQ(filter.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(filter.finish(), "");
}

TEST(Folded, BreaksLongLinesAtSpacesAndKeepsTheOthers) {
  EXPECT_EQ(folded("name  one two three\nshort\n", 12, 6),
            "name  one\n      two\n      three\nshort\n");
  EXPECT_EQ(folded("name  one two", 13, 6), "name  one two");
  EXPECT_EQ(folded("name  one two", 12, 6), "name  one\n      two");
  EXPECT_EQ(folded("\n\nx", 12, 6), "\n\nx");
}

TEST(Folded, KeepsWordsWhole) {
  EXPECT_EQ(folded("a/very/long/path", 6, 2), "a/very/long/path");
  EXPECT_EQ(folded("at a/very/long/path now", 6, 2), "at\n  a/very/long/path\n  now");
  EXPECT_EQ(folded("   indented", 6, 3), "   indented");
}

}  // namespace
}  // namespace lockstep
