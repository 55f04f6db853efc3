#include "data/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files/gzip.h"
#include "core/base/files/zstd.h"
#include "data/sample_origin.h"
#include "data/token_data.h"
#include "data/tokenized_text.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ByteSource source_of(std::string bytes) {
  return [bytes = std::move(bytes), at = size_t{0}](std::span<std::byte> into) mutable {
    const size_t count = std::min(into.size(), bytes.size() - at);
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()) + at, count, into.begin());
    at += count;
    return count;
  };
}

std::vector<std::string> texts_of(const std::string& lines, const JsonLinesOptions& options = {}) {
  JsonLinesReader reader(source_of(lines), "some.jsonl", options);
  std::vector<std::string> texts;
  for (std::string text; reader.next(text);) texts.push_back(text);
  return texts;
}

/// What is said of the second line, `line`, which cannot be read.
std::string complaint(const std::string& line) {
  const std::string message =
      message_of<DataError>([&] { texts_of("{\"text\": \"first\"}\n" + line + "\n"); });
  const std::string begin = "[data] some.jsonl:2: ";
  EXPECT_EQ(message.substr(0, begin.size()), begin);
  return message;
}

std::string all_tokens(const TokenArray& tokens, const Tokenizer& tokenizer) {
  std::string text;
  for (int64_t i = 0; i < tokens.size(); ++i) tokenizer.decode(tokens[i], text);
  return text;
}

class JsonLinesTest : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content) const {
    put_file(folder_ / name, content);
    return (folder_ / name).string();
  }
  TemporaryDirectory folder_;
  const BpeTokenizer bpe_ = make_bpe(the_bpe(), folder_);
  const TokenCache no_cache_{{}};
};

TEST(JsonLines, EachLineIsADocument) {
  EXPECT_THAT(texts_of("{\"text\": \"one\"}\n{\"id\": 7, \"text\": \"t\\u00e9\\n\"}"),
              ElementsAre("one", "té\n"));
  EXPECT_THAT(texts_of("\n{\"text\": \"one\"}\r\n \n{\"text\": \"\"}\n"), ElementsAre("one"));
  EXPECT_THAT(texts_of(""), IsEmpty());
}

TEST(JsonLines, TheFieldIsThatOfTheOutermostObject) {
  EXPECT_THAT(texts_of("{\"a\": {\"body\": \"in\"}, \"b\": [\"body\", 1.5, null, true], "
                       "\"body\": \"out\", \"c\": {\"body\": 3}}\n",
                       {.field = "body"}),
              ElementsAre("out"));
}

TEST(JsonLines, ALineThatCannotBeReadIsNamed) {
  EXPECT_TRUE(says(complaint("{\"text\": \"a"), "is no JSON from byte 12 on"));
  EXPECT_TRUE(says(complaint("{\"text\": \"a\"} {}"), "is no JSON from byte 15 on"));
  EXPECT_TRUE(says(complaint("{\"txt\": \"a\"}"), "has no member \"text\": expected one"));
  EXPECT_TRUE(says(complaint("{\"text\": 3}"), "\"text\" is a number: expected a string"));
  EXPECT_TRUE(says(complaint("{\"text\": [\"a\"]}"), "\"text\" is an array"));
  EXPECT_TRUE(says(complaint("{\"text\": {\"text\": \"a\"}}"), "\"text\" is an object"));
  EXPECT_TRUE(says(complaint("[1]"), "expected a JSON object, got an array"));
  EXPECT_TRUE(says(complaint("\"text\""), "expected a JSON object, got a string"));
}

TEST(JsonLines, WhatIsNotUtf8IsNamed) {
  EXPECT_TRUE(says(complaint("{\"text\": \"caf\xe9\"}"), "got the byte 0xe9 at byte 14 of the"));
  EXPECT_TRUE(says(complaint("{\"text\": \"\xed\xa0\x80\"}"), "got the byte 0xed at byte 11"));
  EXPECT_TRUE(says(complaint("{\"text\": \"\\ud83d\"}"), "got half of a surrogate pair at byte"));
  EXPECT_TRUE(says(message_of<DataError>([] { texts_of("\xff\xfe{"); }),
                   "some.jsonl:1: expected UTF-8, got UTF-16"));
  EXPECT_THAT(texts_of("{\"text\": \"\\ud83d\\ude00\"}"), ElementsAre("\U0001f600"));
}

TEST(JsonLines, DamagedLinesAreSkippedOnRequestAndCounted) {
  JsonLinesReader reader(
      source_of("{\"text\": \"one\"}\n{\n{\"text\": \"caf\xe9\"}\n{\"text\": \"two\"}\n"),
      "some.jsonl", {.skip_damaged_lines = true});
  std::string text;
  ASSERT_TRUE(reader.next(text));
  EXPECT_EQ(text, "one");
  EXPECT_EQ(reader.skipped(), 0);
  ASSERT_TRUE(reader.next(text));
  EXPECT_EQ(text, "two");
  EXPECT_EQ(reader.line(), 4);
  EXPECT_FALSE(reader.next(text));
  EXPECT_EQ(reader.skipped(), 2);
  EXPECT_TRUE(says(reader.first_skipped(), "some.jsonl:2: expected a JSON object"));
}

TEST(JsonLines, DeepNestingIsNoDanger) {
  constexpr size_t kDepth = 200'000;
  EXPECT_THAT(texts_of("{\"a\": " + std::string(kDepth, '[') + std::string(kDepth, ']') +
                       ", \"text\": \"one\"}"),
              ElementsAre("one"));
}

TEST(JsonLines, AreKnownByTheirNames) {
  for (const char* name : {"a.jsonl", "dir/a.jsonl.gz", "a.b.jsonl.zst"}) {
    EXPECT_TRUE(is_json_lines(name)) << name;
  }
  for (const char* name : {"a.json", ".jsonl", "a.jsonl.txt", "jsonl", "a.gz", "a.jsonl/b"}) {
    EXPECT_FALSE(is_json_lines(name)) << name;
  }
}

TEST_F(JsonLinesTest, CompressedFilesHaveTheSameText) {
  std::string lines;
  for (int i = 0; i < 5000; ++i) {
    lines += "{\"text\": \"line " + std::to_string(i * i) + "\"}\n";
  }
  const Documents plain(put("plain.jsonl", lines));
  const auto bytes = gzipped(std::as_bytes(std::span(lines)));
  const std::string packed(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Documents gzip(put("packed.jsonl.gz", packed + packed));  // two members
  EXPECT_EQ(*gzip.whole(), *plain.whole() + "\n" + *plain.whole());
  EXPECT_EQ(plain.count(), 5000u);
  EXPECT_EQ(plain.text(70), "line 4900");
  const std::string cut = put("cut.jsonl.gz", packed.substr(0, packed.size() / 2));
  EXPECT_TRUE(says(message_of<DataError>([&] { Documents(cut, {.skip_damaged_lines = true}); }),
                   "is cut off"));
}

TEST_F(JsonLinesTest, DocumentsAreJoinedByTheEndOfTextToken) {
  const std::string file = put("a.jsonl", "{\"text\": \"the\"}\n\n{\"text\": \"aa\"}\n");
  const Documents documents(file);
  EXPECT_EQ(documents.place(1), file + ":3");
  const TokenizedText text = tokenize(documents, 0, bpe_, no_cache_);
  EXPECT_EQ(all_tokens(text.tokens, bpe_), "the<|endoftext|>aa");
  EXPECT_EQ(text.tokens.size(), 3);
  const ByteTokenizer bytes;  // has no such token
  EXPECT_EQ(all_tokens(tokenize(documents, 0, bytes, no_cache_).tokens, bytes), "the\naa");
}

TEST_F(JsonLinesTest, AGivenSeparatorJoinsThemInstead) {
  const std::string file =
      put("a.jsonl", "{\"text\": \"the\"}\n{\"text\": \"aa\"}\n{\"text\": \"the\"}\n");
  const Documents documents(file, {.separator = " -- "});
  EXPECT_EQ(all_tokens(tokenize(documents, 0, bpe_, no_cache_).tokens, bpe_), "the -- aa -- the");
  const ByteTokenizer bytes;
  EXPECT_EQ(all_tokens(tokenize(documents, 0, bytes, no_cache_).tokens, bytes), "the -- aa -- the");
  EXPECT_NE(documents.hash(), Documents(file).hash());
  EXPECT_NE(Documents(file, {.separator = "\n"}).hash(), Documents(file).hash());
  const TokenizedText half = tokenize(documents, 5, bpe_, no_cache_);
  EXPECT_EQ(all_tokens(half.training(), bpe_), "the -- aa -");
}

TEST_F(JsonLinesTest, StandBesideTextFiles) {
  std::filesystem::create_directory(folder_ / "texts");
  put("texts/1.txt", "aa");
  put("texts/2.jsonl", "{\"text\": \"b\"}\n{\"text\": \"c\"}\n");
  put("texts/3.txt", "dd");
  put("texts/4.txt", "ee");
  const Documents documents((folder_ / "texts").string());
  EXPECT_EQ(*documents.whole(), "aab\nc\nddee");
  EXPECT_EQ(documents.count(), 5u);
  EXPECT_EQ(documents.files(), 4u);
  EXPECT_EQ(documents.joined(), "aa\nb\nc\ndd\nee\n");
}

TEST_F(JsonLinesTest, SkippedLinesAreNoted) {
  const std::string file = put("a.jsonl", "{\"text\": \"the\"}\n{\"text\": 1}\n");
  const Documents documents(file, {.skip_damaged_lines = true});
  ASSERT_EQ(documents.notes().size(), 1u);
  EXPECT_TRUE(says(documents.notes()[0], "a.jsonl: skipped 1 damaged line, the first of them "));
  EXPECT_TRUE(says(message_of<DataError>(
                       [&] { Documents(put("b.jsonl", "1\n2\n"), {.skip_damaged_lines = true}); }),
                   "the text is empty, "));
}

TEST_F(JsonLinesTest, AZeroByteIsNamedByItsLine) {
  const Documents documents(put("a.jsonl", "{\"text\": \"the\"}\n{\"text\": \"a\\u0000\"}\n"));
  EXPECT_TRUE(says(message_of<DataError>([&] { tokenize(documents, 0, bpe_, no_cache_); }),
                   "a.jsonl:2: expected text, got a zero byte at byte 1"));
}

TEST_F(JsonLinesTest, OriginsNameTheLineAndTheByteOfItsText) {
  std::string lines;
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) {
    texts.push_back("the number " + std::to_string(i * 37) + " the aa");
    lines += nlohmann::json({{"text", texts.back()}}).dump() + "\n";
  }
  const std::string file = put("a.jsonl", lines);
  for (const char* separator : {"", " + "}) {
    const auto documents =
        std::make_shared<const Documents>(file, JsonLinesOptions{.separator = separator});
    for (const auto& tokenizer :
         {std::shared_ptr<const Tokenizer>(std::make_shared<ByteTokenizer>()),
          std::shared_ptr<const Tokenizer>(std::make_shared<BpeTokenizer>(bpe_))}) {
      const TokenizedText text = tokenize(*documents, 10, *tokenizer, no_cache_);
      const TokenData source({{"text", text.training(), documents}}, {},
                             {.vocabulary = 300, .seed = 5, .tokenizer = tokenizer});
      const std::vector<SampleOrigin> origins = source.origins(1, 30, 6);
      for (int64_t i = 0; i < 30; ++i) {
        std::vector<int64_t> inputs(6), targets(6);
        source.sequence(1, i, inputs, targets);
        const SampleOrigin& origin = origins[static_cast<size_t>(i)];
        EXPECT_EQ(origin.file, file);
        ASSERT_GE(origin.line, 1);
        ASSERT_LE(origin.line, 200);
        // Behind a text stands the separator, which its line does not have.
        std::string there = texts[static_cast<size_t>(origin.line - 1)];
        if (*separator != '\0') there += separator;
        if (*separator == '\0' && tokenizer->name() == "byte") there += "\n";
        there.erase(0, static_cast<size_t>(origin.first));
        if (static_cast<size_t>(origin.line) < texts.size()) {
          there += texts[static_cast<size_t>(origin.line)];
        }
        std::string begin = decode(*tokenizer, std::vector<uint32_t>(inputs.begin(), inputs.end()));
        // The token between two texts counts as the start of the second.
        if (const size_t end = begin.find(kEndOfText); end != begin.npos) {
          begin.erase(end, kEndOfText.size());
        }
        begin.resize(4);
        EXPECT_EQ(there.substr(0, 4), begin);
      }
    }
  }
}

RC_GTEST_PROP(JsonLines, EveryTextComesBack, ()) {
  const auto points = *rc::gen::container<std::vector<uint32_t>>(
      rc::gen::oneOf(rc::gen::inRange(1U, 0x80U), rc::gen::inRange(0xe000U, 0x110000U)));
  std::string text;
  for (const uint32_t point : points) append_utf8(point, text);
  RC_PRE(!text.empty());
  for (const bool only_ascii : {false, true}) {
    RC_ASSERT(texts_of(nlohmann::json({{"text", text}}).dump(-1, ' ', only_ascii) + "\n") ==
              std::vector<std::string>{text});
  }
}

}  // namespace
}  // namespace lockstep::train
