#include "core/base/json_text.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

std::string nested(int depth) {
  const auto size = static_cast<size_t>(depth);
  return std::string(size, '[') + std::string(size, ']');
}

TEST(JsonNesting, IsAcceptedUpToTheLimit) {
  EXPECT_NO_THROW(check_json_nesting(""));
  EXPECT_NO_THROW(check_json_nesting(nested(kMostJsonNesting)));
  EXPECT_NO_THROW(check_json_nesting(R"({"a": [1, {"b": 2}]})", 3));
  EXPECT_THROW(check_json_nesting(R"({"a": [1, {"b": 2}]})", 2), DataError);
}

TEST(JsonNesting, OfSiblingsDoesNotAddUp) {
  std::string text = "[";
  for (int i = 0; i < 1000; ++i) text += "[{}],";
  EXPECT_NO_THROW(check_json_nesting(text + "0]", 3));
}

TEST(JsonNesting, BeyondTheLimitIsRefusedWithItsPlace) {
  expect_error<DataError>([] { check_json_nesting(nested(kMostJsonNesting + 1)); },
                          "[json] nested deeper than 64", "line 1, column 65");
  expect_error<DataError>([] { check_json_nesting("{\n \"a\":\n  [{}]}", 2); }, "line 3, column 4");
}

TEST(JsonNesting, BracketsInStringsDoNotCount) {
  EXPECT_NO_THROW(check_json_nesting(R"(["[[[[", "{{\"[[["])", 1));
  EXPECT_THROW(check_json_nesting(R"(["\\", []])", 1), DataError);
  EXPECT_NO_THROW(check_json_nesting("[\"[[\\", 1));  // ends within an escape
}

TEST(JsonNesting, AMillionOpenBracketsAreRefusedAtTheFirstTooMany) {
  expect_error<DataError>([] { check_json_nesting(std::string(1'000'000, '[')); }, "column 65");
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  expect_error<DataError>([&] { check_json_nesting(objects); }, "column 321");
}

}  // namespace
}  // namespace lockstep
