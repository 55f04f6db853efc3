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

TEST(ParseJson, NamesTheByteWhereTheTextStopsBeingJson) {
  for (const char* text : {"", "{", "[1,]", "{'a': 1}", "1 2", "\"\xff\"", "nul"}) {
    expect_error<JsonSyntaxError>([&] { (void)parse_json(text); }, "[json] not valid JSON");
  }
  try {
    (void)parse_json("[1, x]");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const JsonSyntaxError& error) {
    EXPECT_EQ(error.byte(), 5U);
  }
}

TEST(ParseJson, RefusesDepthLengthAndNumbersBeyondItsLimits) {
  const std::string open(60'000, '['), close(60'000, ']');
  expect_error<DataError>([&] { (void)parse_json(open + close); }, "nested deeper than 64");
  expect_error<DataError>([&] { (void)parse_ordered_json(open + close); }, "nested deeper than 64");
  expect_error<DataError>([] { (void)parse_json("[1, 2]", 5); }, "the text has 6 bytes");
  expect_error<DataError>([] { (void)parse_json("1e999"); }, "[json] ");
}

}  // namespace
}  // namespace lockstep
