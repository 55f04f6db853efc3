#include "train/page/config_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::train {

bool operator==(const ConfigValue& a, const ConfigValue& b) {
  return a.path == b.path && a.value == b.value && a.origin == b.origin;
}
void PrintTo(const ConfigValue& value, std::ostream* out) {
  *out << value.path << " = " << value.value << " # " << value.origin;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ConfigValues, HaveTheirPathsAndOrigins) {
  EXPECT_THAT(read_config_values("# proto-file: configs/run.proto\n\n"
                                 "name: \"a\"     # default\n"
                                 "model {\n"
                                 "  gpt2 {\n"
                                 "    layers: 4   # a.txtpb:3:5\n"
                                 "  }\n"
                                 "}\n"
                                 "data {\n"
                                 "  random {}     # --set data.random={}\n"
                                 "}\n"
                                 "steps: [1, 2]\n"),
              ElementsAre(ConfigValue{"name", "\"a\"", "default"},
                          ConfigValue{"model.gpt2.layers", "4", "a.txtpb:3:5"},
                          ConfigValue{"data.random", "{}", "--set data.random={}"},
                          ConfigValue{"steps", "[1, 2]", ""}));
}

TEST(ConfigValues, BlocksOfAListHavePathsOfTheirOwn) {
  EXPECT_THAT(
      read_config_values("source {\n  weight: 1\n}\nsource {\n  weight: 2\n}\n"),
      ElementsAre(ConfigValue{"source.weight", "1", ""}, ConfigValue{"source[1].weight", "2", ""}));
}

TEST(ConfigValues, QuotedTextsMayHoldWhatEndsAValueElsewhere) {
  EXPECT_THAT(read_config_values("path: \"a # b \\\" { c\"  # x.txtpb:1:1\n"),
              ElementsAre(ConfigValue{"path", "\"a # b \\\" { c\"", "x.txtpb:1:1"}));
}

TEST(ConfigValues, WhatIsNoConfigGivesNoneAndDoesNotFail) {
  EXPECT_THAT(read_config_values(""), IsEmpty());
  EXPECT_THAT(read_config_values("}\n}\n{\n\"\n<b>\n"), IsEmpty());
  EXPECT_THAT(read_config_values("a {\n b {\n c: 1"), ElementsAre(ConfigValue{"a.b.c", "1", ""}));
}

TEST(ConfigValues, AnOriginCountsOnlyForTheValueThatItWasToldFor) {
  EXPECT_THAT(with_origins({{"a", "1", ""}, {"b", "2", ""}, {"c", "3", ""}},
                           {{"a", "1", "default"}, {"b", "7", "old.txtpb:1:1"}}),
              ElementsAre(ConfigValue{"a", "1", "default"}, ConfigValue{"b", "2", ""},
                          ConfigValue{"c", "3", ""}));
}

}  // namespace
}  // namespace lockstep::train
