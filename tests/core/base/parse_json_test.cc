#include "core/base/parse_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

TEST(ParseJson, GivesTheDocument) {
  EXPECT_EQ(parse_json(R"({"b": [1, 2], "a": null})").dump(), R"({"a":null,"b":[1,2]})");
  EXPECT_EQ(parse_ordered_json(R"({"b": [1, 2], "a": null})").dump(), R"({"b":[1,2],"a":null})");
}

TEST(ParseJson, KeepsTheOrderOfManyMembersAndTheLastValueOfEach) {
  std::string text = "{";
  std::string expected = "{";
  for (int i = 100; i > 0; --i) {
    text += "\"m" + std::to_string(i) + "\":[{\"x\":" + std::to_string(i) + "}],";
    expected += "\"m" + std::to_string(i) +
                "\":" + (i == 97 || i == 3 ? "-1" : "[{\"x\":" + std::to_string(i) + "}]") + ",";
  }
  expected.back() = '}';
  EXPECT_EQ(parse_ordered_json(text + R"("m97":true,"m97":-1,"m3":-1})").dump(), expected);
}

TEST(ParseJson, ReadsTheDocumentThatTheLibraryReads) {
  for (const char* text :
       {"[]", "{}", "[[], {}, [{}]]", "null", "[true, -5, 7, 2.5e3, \"a\\n\"]",
        "18446744073709551615", R"({"a": {"b": {"c": [1, {"d": null}]}}, "": 0})"}) {
    EXPECT_EQ(parse_ordered_json(text), nlohmann::ordered_json::parse(text)) << text;
  }
}

TEST(ParseJson, LeavesOutTheStringsThatAreTaken) {
  std::string taken;
  const auto take = [&](std::span<const std::string> names, std::string_view value) {
    if (value == "stays") return false;
    for (const std::string& name : names) taken += name + "/";
    taken += std::string(value) + " ";
    return true;
  };
  const char* const text =
      R"({"a": "1", "b": {"c": "2", "d": "stays", "e": [{"f": "3"}, "element"], "g": 4}, "h": "5"})";
  EXPECT_EQ(parse_ordered_json(text, take).dump(),
            R"({"b":{"d":"stays","e":[{},"element"],"g":4}})");
  EXPECT_EQ(taken, "a/1 b/c/2 b/e//f/3 h/5 ");
}

TEST(ParseJson, NamesTheByteWhereTheTextStopsBeingJson) {
  for (const char* text : {"", "{", "[1,]", "{'a': 1}", "1 2", "\"\xff\"", "nul"}) {
    expect_error<JsonSyntaxError>([&] { (void)parse_json(text); }, "[json] not valid JSON");
    expect_error<JsonSyntaxError>([&] { (void)parse_ordered_json(text); }, "[json] not valid JSON");
  }
  for (const auto parse :
       {+[] { (void)parse_json("[1, x]"); }, +[] { (void)parse_ordered_json("[1, x]"); }}) {
    try {
      parse();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const JsonSyntaxError& error) {
      EXPECT_EQ(error.byte(), 5U);
    }
  }
}

TEST(ParseJson, RefusesDepthLengthAndNumbersBeyondItsLimits) {
  const std::string open(60'000, '['), close(60'000, ']');
  expect_error<DataError>([&] { (void)parse_json(open + close); }, "nested deeper than 64");
  expect_error<DataError>([&] { (void)parse_ordered_json(open + close); }, "nested deeper than 64");
  expect_error<DataError>([] { (void)parse_json("[1, 2]", 5); }, "the text has 6 bytes");
  expect_error<DataError>([] { (void)parse_json("1e999"); }, "[json] ");
  expect_error<DataError>([] { (void)parse_ordered_json("1e999"); }, "[json] ");
}

}  // namespace
}  // namespace lockstep
