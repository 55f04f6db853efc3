#include "data/example_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/files/gzip.h"
#include "tests/data/example_files.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;

/// Parts are shown as their text in brackets: [context], <counted>, with ! where they may be
/// special.
std::string shown(const std::vector<ExamplePart>& parts) {
  std::string text;
  for (const ExamplePart& each : parts) {
    text += (each.counted ? "<" : "[") + each.text + (each.special ? "!" : "") +
            (each.counted ? ">" : "]");
  }
  return text;
}

std::vector<std::string> examples_of(const std::string& lines, const ExampleForm& form = {}) {
  const auto bytes = std::make_shared<std::string>(lines);
  ExampleReader reader(
      [bytes](std::span<std::byte> into) {
        const size_t count = std::min(into.size(), bytes->size());
        std::copy_n(reinterpret_cast<const std::byte*>(bytes->data()), count, into.begin());
        bytes->erase(0, count);
        return count;
      },
      "some.jsonl", form);
  std::vector<std::string> examples;
  for (std::vector<ExamplePart> parts; reader.next(parts);) examples.push_back(shown(parts));
  return examples;
}

/// What is said of the second line, `line`, which cannot be read.
std::string complaint_of(const std::string& line, const ExampleForm& form = {.chat = {}}) {
  const std::string good = form.chat ? R"({"messages": [{"role": "assistant", "content": "a"}]})"
                                     : R"({"prompt": "a", "completion": "b"})";
  const std::string message =
      message_of<DataError>([&] { examples_of(good + "\n" + line + "\n", form); });
  const std::string begin = "[data] some.jsonl:2: ";
  EXPECT_EQ(message.substr(0, begin.size()), begin);
  return message;
}

const ExampleForm kChat{.chat = ChatForm()};

TEST(ExampleReader, TheCompletionCountsAndThePromptDoesNot) {
  EXPECT_THAT(examples_of("\n" + example_line("2+2=", "4") + example_line("", "b")),
              ElementsAre("[2+2=!]<4!>", "[!]<b!>"));
  EXPECT_THAT(examples_of(R"({"a": "in", "q": 1, "b": "caf\u00e9"})",
                          {.prompt = "a", .completion = "b", .special = false}),
              ElementsAre("[in]<café>"));
}

TEST(ExampleReader, MessagesOfTheTrainedRoleCountWithTheirEnds) {
  EXPECT_THAT(examples_of(R"({"messages": [{"role": "user", "content": "hi"}, )"
                          R"({"role": "assistant", "content": "ho"}]})",
                          kChat),
              ElementsAre("[<|im_start|>user\n!][hi][<|im_end|>\n!]"
                          "[<|im_start|>assistant\n!]<ho><<|im_end|>\n!>"));
  EXPECT_THAT(
      examples_of(
          R"({"turns": [{"role": "bot", "content": "a"}]})",
          {.chat =
               ChatForm{
                   .field = "turns", .begin = "{role}/{role}:", .end = "", .trained_role = "bot"}}),
      ElementsAre("[bot/bot:!]<a><!>"));
}

TEST(ExampleReader, ALineThatIsNoExampleIsNamed) {
  EXPECT_TRUE(
      says(complaint_of("{\"prompt\": \"a"), "is no JSON from byte 14 on. Repair the line"));
  EXPECT_TRUE(says(complaint_of("[1]"), "expected a JSON object, got an array"));
  EXPECT_TRUE(says(complaint_of("{\"prompt\": \"a\"}"), "has no member \"completion\": expected"));
  EXPECT_TRUE(says(complaint_of("{\"completion\": \"a\"}"), "has no member \"prompt\""));
  EXPECT_TRUE(says(complaint_of(R"({"prompt": 1, "completion": "a"})"), "\"prompt\" is a number"));
  EXPECT_TRUE(says(complaint_of(example_line("a", "")), "\"completion\" is empty"));
  EXPECT_TRUE(says(complaint_of("{\"prompt\": \"caf\xe9\"}"), "got the byte 0xe9 at byte 16"));
  const std::string deep(200'000, '[');
  EXPECT_TRUE(says(complaint_of("{\"a\": " + deep), "nested too deeply"));
}

TEST(ExampleReader, AConversationThatIsNoneIsNamed) {
  EXPECT_TRUE(
      says(complaint_of("{}", kChat), "no member \"messages\": expected one with an array"));
  EXPECT_TRUE(says(complaint_of(R"({"messages": "a"})", kChat), "is a string: expected an array"));
  EXPECT_TRUE(says(complaint_of(R"({"messages": ["a"]})", kChat),
                   "messages[0] is a string: expected an object"));
  EXPECT_TRUE(says(complaint_of(R"({"messages": [{"role": "user"}]})", kChat),
                   "has no member messages[0].\"content\""));
  EXPECT_TRUE(says(complaint_of(R"({"messages": [{"role": "user", "content": null}]})", kChat),
                   "messages[0].\"content\" is null: expected a string"));
  for (const char* role : {"user", "assistant"}) {
    const std::string content = role == std::string("user") ? "a" : "";
    EXPECT_TRUE(says(complaint_of(R"({"messages": [{"role": ")" + std::string(role) +
                                      R"(", "content": ")" + content + R"("}]})",
                                  kChat),
                     "no message of role \"assistant\" with a content"));
  }
}

TEST(ExampleReader, DamagedLinesAreSkippedOnRequestAndCounted) {
  const TemporaryDirectory folder;
  const std::string lines =
      example_line("a", "b") + "{\n" + example_line("a", "") + example_line("c", "d");
  const std::vector<std::byte> packed = gzipped(std::as_bytes(std::span(lines)));
  put_file(folder / "a.jsonl.gz", {reinterpret_cast<const char*>(packed.data()), packed.size()});
  ExampleReader reader(folder / "a.jsonl.gz", {.skip_damaged_lines = true});
  std::vector<ExamplePart> parts;
  ASSERT_TRUE(reader.next(parts));
  ASSERT_TRUE(reader.next(parts));
  EXPECT_EQ(shown(parts), "[c!]<d!>");
  EXPECT_EQ(reader.line(), 4);
  EXPECT_FALSE(reader.next(parts));
  EXPECT_EQ(reader.skipped(), 2);
  EXPECT_TRUE(says(reader.first_skipped(), "a.jsonl.gz:2: expected a JSON object"));
}

TEST(ExampleReader, FilesOfOtherKindsAreRefused) {
  const TemporaryDirectory folder;
  put_file(folder / "a.csv", "prompt,completion\n");
  EXPECT_TRUE(says(message_of<DataError>([&] { ExampleReader(folder / "a.csv", {}); }),
                   "a.csv: expected a file of JSON lines"));
}

}  // namespace
}  // namespace lockstep::train
