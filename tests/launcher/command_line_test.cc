#include "launcher/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/exit_code.h"

namespace lockstep::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Parsed {
  std::optional<int> status;
  std::string output;
  std::string errors;
};

Parsed parse(CommandLine& line, std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Parsed parsed;
  std::exception_ptr thrown;
  try {
    parsed.status = line.parse(static_cast<int>(words.size()), words.data());
  } catch (...) {
    thrown = std::current_exception();
  }
  parsed.output = testing::internal::GetCapturedStdout();
  parsed.errors = testing::internal::GetCapturedStderr();
  if (thrown) std::rethrow_exception(thrown);
  return parsed;
}

void expect_refused(CommandLine& line, const std::vector<const char*>& words,
                    const std::string& why) {
  const Parsed parsed = parse(line, words);
  EXPECT_EQ(parsed.status, kUsage) << why;
  EXPECT_THAT(parsed.errors, HasSubstr(why));
  EXPECT_THAT(parsed.errors, HasSubstr("Run with --help for more information."));
  EXPECT_EQ(parsed.output, "");
}

TEST(CommandLine, ValuesOfEveryTypeArriveAndOthersStayAsTheyWere) {
  CommandLine line("Test.");
  int small = 0;
  int64_t large = 0;
  uint64_t seed = 0;
  double seconds = 0;
  std::string text;
  std::string untouched = "default";
  std::vector<std::string> list;
  bool flag = false;
  bool other_flag = false;
  line.option("--small", small, "");
  line.option("--large", large, "");
  line.option("--seed", seed, "");
  line.option("-s,--seconds", seconds, "");
  line.option("text", text, "");
  line.option("--untouched", untouched, "");
  line.option("--list", list, "");
  line.flag("--flag", flag, "");
  line.flag("--other-flag", other_flag, "");
  EXPECT_EQ(parse(line, {"words", "--small", "-3", "--large=9007199254740993", "--seed",
                         "18446744073709551615", "-s", "0.5", "--flag", "--list", "a", "b"})
                .status,
            std::nullopt);
  EXPECT_EQ(small, -3);
  EXPECT_EQ(large, 9007199254740993);
  EXPECT_EQ(seed, UINT64_MAX);
  EXPECT_EQ(seconds, 0.5);
  EXPECT_EQ(text, "words");
  EXPECT_EQ(untouched, "default");
  EXPECT_THAT(list, ElementsAre("a", "b"));
  EXPECT_TRUE(flag);
  EXPECT_FALSE(other_flag);
}

TEST(CommandLine, TextThatIsNoValueOfTheTypeIsRefused) {
  CommandLine line("Test.");
  int steps = 7;
  uint64_t seed = 7;
  line.option("--steps", steps, "");
  line.option("--seed", seed, "");
  expect_refused(line, {"--steps", "many"}, "Could not convert: --steps = many");
  expect_refused(line, {"--steps", "99999999999"}, "Could not convert: --steps = 99999999999");
  expect_refused(line, {"--seed", "x"}, "Could not convert: --seed = x");
  expect_refused(line, {"--unknown"}, "--unknown");
}

TEST(CommandLine, NumbersOutsideTheirRangeAreRefused) {
  CommandLine line("Test.");
  int above = 1;
  double least = 1;
  int64_t between = 5;
  line.option("--above", above, "").positive();
  line.option("--least", least, "").not_negative();
  line.option("--between", between, "").between(2, int64_t{1} << 32);
  expect_refused(line, {"--above", "0"}, "--above: expected a number above 0, got 0");
  expect_refused(line, {"--above", "many"}, "--above: expected a number above 0, got many");
  expect_refused(line, {"--least", "-0.1"}, "--least: expected a number of at least 0, got -0.1");
  expect_refused(line, {"--between", "1"}, "--between: expected an integer from 2 to 2^32, got 1");
  expect_refused(line, {"--between", "4294967297"}, "from 2 to 2^32, got 4294967297");
  EXPECT_EQ(parse(line, {"--above", "1", "--least", "0", "--between", "4294967296"}).status,
            std::nullopt);
  EXPECT_EQ(between, int64_t{1} << 32);
}

TEST(CommandLine, ChoicesChecksAndFoldersAreKept) {
  CommandLine line("Test.");
  std::string kind;
  std::string even;
  std::string folder;
  line.option("--kind", kind, "").one_of({"a", "b"});
  line.option("--even", even, "").check([](const std::string& text) {
    return text.size() % 2 == 0 ? "" : "expected an even length";
  });
  line.option("--folder", folder, "").existing_folder();
  expect_refused(line, {"--kind", "c"}, "--kind: expected one of a, b, got c");
  expect_refused(line, {"--even", "abc"}, "--even: expected an even length");
  expect_refused(line, {"--folder", "/no/such"}, "Directory does not exist: /no/such");
  EXPECT_EQ(parse(line, {"--kind", "b", "--even", "ab", "--folder", "/"}).status, std::nullopt);
}

TEST(CommandLine, SizesMayHaveUnits) {
  CommandLine line("Test.");
  int64_t binary = 0;
  int64_t decimal = 0;
  line.option("--binary", binary, "").binary_size().positive();
  line.option("--decimal", decimal, "").positive().decimal_size();
  EXPECT_EQ(parse(line, {"--binary", "64KB", "--decimal", "64KB"}).status, std::nullopt);
  EXPECT_EQ(binary, 65536);
  EXPECT_EQ(decimal, 64000);
  EXPECT_EQ(parse(line, {"--binary", "3", "--decimal", "2GiB"}).status, std::nullopt);
  EXPECT_EQ(binary, 3);
  EXPECT_EQ(decimal, int64_t{2} << 30);
  expect_refused(line, {"--binary", "0"}, "--binary");
  expect_refused(line, {"--decimal", "1Q"}, "--decimal");
}

TEST(CommandLine, WhatIsMissingIsNamed) {
  CommandLine line("Test.");
  std::string file;
  bool fresh = false;
  std::string folder;
  line.option("file", file, "").required();
  const Option where = line.option("--folder", folder, "");
  line.flag("--fresh", fresh, "").needs(where);
  expect_refused(line, {}, "file is required");
  expect_refused(line, {"a", "--fresh"}, "--fresh requires --folder");
  EXPECT_FALSE(where.given());
  EXPECT_EQ(parse(line, {"a", "--fresh", "--folder", "b"}).status, std::nullopt);
  EXPECT_TRUE(where.given());
}

TEST(CommandLine, ListsEndWhereTheyAreToldTo) {
  CommandLine line("Test.");
  std::vector<std::string> files;
  std::vector<std::string> fields;
  std::vector<std::string> operations;
  line.option("file", files, "");
  line.option("--set", fields, "").one_value_each();
  line.option("--op", operations, "").separated_by(',');
  EXPECT_EQ(parse(line, {"--set", "a=1", "one", "--set", "b=2", "two", "--op", "x,y"}).status,
            std::nullopt);
  EXPECT_THAT(files, ElementsAre("one", "two"));
  EXPECT_THAT(fields, ElementsAre("a=1", "b=2"));
  EXPECT_THAT(operations, ElementsAre("x", "y"));
}

TEST(CommandLine, RunsTheVerbThatIsGivenAndNoOther) {
  CommandLine line("Test.");
  line.requires_verb();
  std::vector<std::string> ran;
  std::string name;
  const Verb first = line.verb("first", "");
  first.option("name", name, "");
  first.runs([&] { ran.push_back("first " + name); });
  line.verb("second", "").runs([&] { ran.emplace_back("second"); });
  EXPECT_EQ(parse(line, {"first", "x"}).status, std::nullopt);
  EXPECT_THAT(ran, ElementsAre("first x"));
  expect_refused(line, {}, "program needs a verb: one of first, second.");
  EXPECT_THAT(ran, ElementsAre("first x"));
}

TEST(CommandLine, AWrongVerbOrOptionIsAnsweredWithTheNearestNameAndAllNames) {
  CommandLine line("Test.", "program");
  line.requires_verb();
  std::vector<std::string> files;
  int64_t steps = 0;
  bool fresh = false;
  std::string format;
  const Verb train = line.verb("train", "");
  train.option("config", files, "").required();
  train.option("--steps", steps, "");
  train.flag("-f,--fresh", fresh, "");
  train.option("--log-format", format, "").one_of({"text", "json"});
  const Verb bench = line.verb("bench", "");
  bench.requires_verb();
  bench.verb("step", "").option("file", format, "");
  expect_refused(line, {"trian", "a.txtpb"},
                 "program has no verb \"trian\". Did you mean train? Its verbs: train, bench.\n");
  expect_refused(line, {"bench", "stpe"},
                 "bench has no verb \"stpe\". Did you mean step? Its verbs: step.\n");
  expect_refused(line, {"bench"}, "bench needs a verb: one of step.\n");
  expect_refused(line, {"train", "a", "--step", "5"},
                 "train has no option \"--step\". Did you mean --steps? Its options: --help, "
                 "--steps, --fresh, --log-format.\n");
  expect_refused(
      line, {"train", "--config=x"},
      "train has no option \"--config\". config is given without a name, as in: train x. "
      "Its options: ");
  expect_refused(line, {"--steps", "5", "train", "a"},
                 "program has no option \"--steps\". train has it: options stand after the verb.");
  expect_refused(line, {"train", "a", "--log-format", "jsn"},
                 "--log-format: expected one of text, json, got jsn. Did you mean json?");
  expect_refused(line, {"bench", "step", "a", "b"},
                 "bench step takes no further argument: got \"b\".");
}

TEST(CommandLine, UnderscoresInOptionsAreReadAsDashes) {
  CommandLine line("Test.");
  int64_t samples = 0;
  std::string text;
  line.option("--num-samples", samples, "");
  line.option("--start", text, "");
  EXPECT_EQ(parse(line, {"--num_samples", "3", "--start", "a_b"}).status, std::nullopt);
  EXPECT_EQ(samples, 3);
  EXPECT_EQ(text, "a_b");
  EXPECT_EQ(parse(line, {"--num_samples=4"}).status, std::nullopt);
  EXPECT_EQ(samples, 4);
}

TEST(CommandLine, AVerbMayEndTheProgramOrRefuseAnArgument) {
  CommandLine line("Test.");
  line.verb("answer", "").runs([] { throw ExitStatus(75); });
  line.verb("refuse", "").runs([] { throw UsageError("name: no such thing"); });
  line.verb("fail", "").runs([] { throw std::logic_error("broken"); });
  const Parsed answer = parse(line, {"answer"});
  EXPECT_EQ(answer.status, 75);
  EXPECT_EQ(answer.output + answer.errors, "");
  expect_refused(line, {"refuse"}, "name: no such thing\n");
  EXPECT_THROW(parse(line, {"fail"}), std::logic_error);
}

TEST(CommandLine, HelpAndVersionEndTheProgramWell) {
  CommandLine line("What it is for.", "name");
  line.version("1.2.3", [] { return "{}"; });
  int rounds = 9;
  line.option("--rounds", rounds, "How many").shows_default().between(1, 10);
  line.footer("The end.");
  const Parsed help = parse(line, {"--help"});
  EXPECT_EQ(help.status, kSuccess);
  EXPECT_EQ(help.output, line.help());
  EXPECT_THAT(help.output, HasSubstr("What it is for.\nUsage: name [OPTIONS]"));
  EXPECT_THAT(help.output, HasSubstr("--rounds INT from 1 to 10=9"));
  EXPECT_THAT(help.output, HasSubstr("The end."));
  const Parsed version = parse(line, {"--version"});
  EXPECT_EQ(version.status, kSuccess);
  EXPECT_EQ(version.output, "1.2.3\n");
  EXPECT_EQ(parse(line, {"--version", "--json"}).output, "{}\n");
  EXPECT_EQ(parse(line, {"--json", "--version"}).output, "{}\n");
  EXPECT_EQ(parse(line, {"--json"}).status, kUsage);
}

TEST(CommandLine, WhatWasAddedIsListedForCompletion) {
  CommandLine line("Test.", "name");
  std::string kind;
  std::string file;
  const Verb verb = line.verb("verb", "");
  verb.without_help_flag();
  verb.option("file", file, "");
  verb.option("-k,--kind", kind, "").one_of({"a", "b"});
  verb.mention("-n,--np", "N", "Ranks");
  EXPECT_EQ(line.name(), "name");
  ASSERT_EQ(line.verbs().size(), 1U);
  EXPECT_EQ(line.verbs()[0].name(), "verb");
  const std::vector<Verb::Words> options = line.verbs()[0].options();
  ASSERT_EQ(options.size(), 3U);
  EXPECT_THAT(options[0].names, IsEmpty());
  EXPECT_THAT(options[1].names, ElementsAre("--kind", "-k"));
  EXPECT_THAT(options[1].choices, ElementsAre("a", "b"));
  EXPECT_THAT(options[2].names, ElementsAre("--np", "-n"));
  EXPECT_THAT(options[2].choices, IsEmpty());
}

}  // namespace
}  // namespace lockstep::launcher
