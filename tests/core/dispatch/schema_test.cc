#include "core/dispatch/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

TEST(Schema, ReadsNameOverloadArgumentsAndReturns) {
  const Schema s = parse_schema(
      "aten::add.Tensor(Tensor self, Tensor? other, *, Scalar alpha=1) -> (Tensor a, Tensor[] b)");
  EXPECT_EQ(s.name, "add");
  EXPECT_EQ(s.overload, "Tensor");
  EXPECT_EQ(s.full_name(), "add.Tensor");
  ASSERT_EQ(s.arguments.size(), 3u);
  EXPECT_FALSE(s.arguments[0].type.optional);
  EXPECT_TRUE(s.arguments[1].type.optional);
  EXPECT_FALSE(s.arguments[1].keyword_only);
  EXPECT_TRUE(s.arguments[2].keyword_only);
  EXPECT_EQ(s.arguments[2].default_value.to_scalar().kind(), DType::kI64);
  ASSERT_EQ(s.returns.size(), 2u);
  EXPECT_EQ(s.returns[0].name, "a");
  EXPECT_TRUE(s.returns[1].type.list);
  EXPECT_EQ(s.find("other"), 1);
  EXPECT_EQ(s.find("nobody"), -1);
}

TEST(Schema, KnowsWhatIsWrittenAndWhichArgumentTheResultIs) {
  const Schema out = parse_schema("mm.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_TRUE(out.is_mutable());
  EXPECT_EQ(out.written_alias(0), 2);
  const Schema view = parse_schema("t(Tensor(a) self) -> Tensor(a)");
  EXPECT_FALSE(view.is_mutable());
  EXPECT_EQ(view.written_alias(0), -1);
  EXPECT_EQ(view.written_alias(1), -1);
}

TEST(Schema, DistinguishesOptionalListsFromListsOfOptionals) {
  const Schema s = parse_schema("f(Tensor?[] a, int[]? b, Tensor(x!)[] c, int[2]? d) -> ()");
  EXPECT_TRUE(s.arguments[0].type.optional_element);
  EXPECT_FALSE(s.arguments[0].type.optional);
  EXPECT_TRUE(s.arguments[1].type.optional);
  EXPECT_FALSE(s.arguments[1].type.optional_element);
  EXPECT_TRUE(s.arguments[2].written);
  EXPECT_EQ(s.arguments[3].list_size, 2);
  EXPECT_TRUE(s.returns.empty());
}

TEST(Schema, DefaultsHaveTheArgumentsType) {
  const Schema s = parse_schema(
      "f(int a=-3, float b=2, float c=1e-05, Scalar d=2., bool e=True, int[2] f=1, int[] g=[1, 2], "
      "Tensor? h=None, str i=\"mean\", str j='sum', MemoryFormat k=preserve_format, "
      "ScalarType l=long, int m=9223372036854775807, int n=Mean) -> ()");
  const auto value = [&s](size_t i) -> const Value& { return s.arguments[i].default_value; };
  EXPECT_EQ(value(0).to_int(), -3);
  EXPECT_EQ(value(1).tag(), Value::Tag::kDouble);
  EXPECT_EQ(value(2).to_double(), 1e-5);
  EXPECT_TRUE(value(3).to_scalar().is_floating());
  EXPECT_TRUE(value(4).to_bool());
  EXPECT_EQ(to_dims(value(5).to_int_list()), (Dims{1, 1}));
  EXPECT_EQ(to_dims(value(6).to_int_list()), (Dims{1, 2}));
  EXPECT_TRUE(value(7).is_none());
  EXPECT_TRUE(s.arguments[7].has_default);
  EXPECT_EQ(value(8).to_string_view(), "mean");
  EXPECT_EQ(value(9).to_string_view(), "sum");
  EXPECT_EQ(value(10).to_memory_format(), MemoryFormat::kPreserve);
  EXPECT_EQ(value(11).to_dtype(), DType::kI64);
  EXPECT_EQ(value(12).to_int(), INT64_MAX);
  EXPECT_EQ(value(13).to_int(), 1);
}

/// Normalizes PyTorch's text: removes what our spelling omits and unifies the rest.
std::string normal(std::string text) {
  const std::pair<const char*, const char*> changes[] = {
      {"^aten::", ""},
      {"SymInt", "int"},
      {" -> \\*\\)", ")"},
      {"'(\\w*)'", "\"$1\""},
      {"=Mean", "=1"},
      {"=long", "=int64"},
      {"(\\d)\\.0*([,)])", "$1$2"},
      {"=\\[(-?\\d+)(, \\1)*\\]", "=$1"},
      {"1.0000000000000001e-05", "1e-05"},
      {"memory_format=0", "memory_format=contiguous_format"}};
  for (const auto& [from, to] : changes) text = std::regex_replace(text, std::regex(from), to);
  return text;
}

void expect_round_trip(const std::string& text) {
  const Schema first = parse_schema(text);
  const std::string printed = first.to_string();
  const Schema second = parse_schema(printed);
  EXPECT_EQ(second.to_string(), printed);
  ASSERT_EQ(second.arguments.size(), first.arguments.size()) << printed;
  for (size_t i = 0; i < first.arguments.size(); ++i) {
    const Argument& a = first.arguments[i];
    const Argument& b = second.arguments[i];
    EXPECT_EQ(a.name, b.name) << printed;
    EXPECT_EQ(a.type, b.type) << printed;
    EXPECT_EQ(a.list_size, b.list_size) << printed;
    EXPECT_EQ(a.alias, b.alias) << printed;
    EXPECT_EQ(a.written, b.written) << printed;
    EXPECT_EQ(a.keyword_only, b.keyword_only) << printed;
    EXPECT_EQ(a.has_default, b.has_default) << printed;
    EXPECT_EQ(a.default_value.tag(), b.default_value.tag()) << printed;
    EXPECT_EQ(a.default_value.to_string(), b.default_value.to_string()) << printed;
  }
  EXPECT_EQ(second.returns.size(), first.returns.size());
}

TEST(Schema, WhatContradictsItselfIsRefused) {
  const std::pair<const char*, std::vector<std::string>> refused[] = {
      {"f(Tensor a, int a) -> Tensor", {"at position 12:", "not \"a\" again"}},
      {"f(Tensor a, *, int a) -> Tensor", {"not \"a\" again"}},
      {"f(int a=1, Tensor b) -> Tensor",
       {"at position 11:", "a default for \"b\"", "because \"a\" has a default"}},
      {"f(int a=\"one\") -> Tensor", {"at position 8:", "a default of type int"}},
      {"f(int a=1.5) -> Tensor", {"a default of type int"}},
      {"f(int a=True) -> Tensor", {"a default of type int"}},
      {"f(int a=None) -> Tensor", {"a default of type int"}},
      {"f(bool a=1) -> Tensor", {"a default of type bool"}},
      {"f(str a=1) -> Tensor", {"a default of type str"}},
      {"f(Tensor a=0) -> Tensor", {"a default of type Tensor"}},
      {"f(float[] a=[1]) -> Tensor", {"a default of type float[]"}},
      {"f(Tensor[] a=[1]) -> Tensor", {"a list of tensors is empty by default"}},
      {"f(Tensor a, *) -> Tensor", {"expected ','"}},
      {"f(Tensor a) -> Tensor stray", {"at position 22:", "expected the end, got \"stray\""}},
      {"f(Tensor a) -> (Tensor b) stray", {"expected the end"}},
      {"f(Tensor a) -> Tensor, Tensor", {"expected the end"}},
  };
  for (const auto& [text, parts] : refused) {
    SCOPED_TRACE(text);
    try {
      (void)parse_schema(text);
      ADD_FAILURE() << "was accepted";
    } catch (const DispatchError& error) {
      for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
    }
  }
}

TEST(Schema, KeywordsMayBeRequiredAfterADefault) {
  const Schema s = parse_schema("f(Tensor a, int dim=0, *, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_FALSE(s.arguments[2].has_default);
}

TEST(Schema, WhatIsPrintedParsesToTheSame) {
  for (const char* text :
       {"f() -> ()", "f(Tensor?[] a, int[1]? b=None) -> (Tensor(a!), Tensor b)",
        "f(*, Tensor(a!)[] x) -> Tensor(a!)[]", "f(MemoryFormat m=contiguous_format) -> Tensor",
        "f(ScalarType t=bfloat16, Scalar s=1.0, float x=2.5) -> Tensor",
        "f(Device? d=None, Layout? l=None, Generator? g=None, str s=\"none\") -> Tensor"}) {
    expect_round_trip(text);
    EXPECT_EQ(parse_schema(text).to_string(), text);
  }
}

TEST(Schema, EverySchemaOfTheConformanceCasesSurvivesPrinting) {
  const std::filesystem::path folder =
      std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "../shared/conformance";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no conformance cases beside the sources";
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    std::ifstream stream(file.path());
    const std::string text = nlohmann::json::parse(stream).at("schema");
    SCOPED_TRACE(text);
    expect_round_trip(text);
    EXPECT_EQ(normal(parse_schema(text).to_string()), normal(text));
    ++count;
  }
  EXPECT_GT(count, 0u);
}

TEST(Schema, ErrorsGiveThePositionAndWhatWasExpected) {
  const auto fails = [](std::string_view text, size_t position, const char* wanted) {
    SCOPED_TRACE(text);
    expect_error<DispatchError>([&] { parse_schema(text); },
                                "at position " + std::to_string(position) + ":", wanted);
  };
  fails("", 0, "an operator name");
  fails("mm Tensor self)", 3, "'('");
  fails("mm(Tenzor self) -> Tensor", 3, "a type (Tensor, Scalar");
  fails("mm(Tensor self -> Tensor", 15, "')'");
  fails("mm(Tensor) -> Tensor", 9, "an argument name");
  fails("mm(Tensor self)", 15, "'-'");
  fails("mm(Tensor self) -> ", 19, "a type");
  fails("mm(Tensor self) -> (Tensor", 26, "')'");
  fails("mm(Tensor self) -> Tensor; rm", 25, "the end");
  fails("mm(int[x] dims) -> Tensor", 7, "a number");
  fails("mm(Tensor(a self) -> Tensor", 12, "')'");
}

TEST(Schema, ADefaultOfAnotherTypeIsAnErrorAtTheDefault) {
  for (const char* argument : {"int a=1.5", "int a=x", "Tensor a=3", "int a=None", "bool a=None",
                               "Scalar a=1.x", "ScalarType a=floatish", "bool a=Mean"}) {
    SCOPED_TRACE(argument);
    const size_t position = 2 + std::string_view(argument).find('=') + 1;
    expect_error<DispatchError>([&] { parse_schema("f(" + std::string(argument) + ") -> Tensor"); },
                                "at position " + std::to_string(position) + ":",
                                "a default of type ");
  }
}

}  // namespace
}  // namespace lockstep
