#include "data/example_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/files/text_files.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "tests/data/example_files.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ExampleSetTest : public testing::Test {
 protected:
  ExampleSet read(const std::string& lines, ExampleEncoding encoding = {},
                  const ExampleForm& form = {}) const {
    put_file(folder_ / "a.jsonl", lines);
    if (!encoding.tokenizer) encoding.tokenizer = bpe_;
    if (encoding.longest == 0) encoding.longest = 1000;
    return {(folder_ / "a.jsonl").string(), form, encoding};
  }
  TemporaryDirectory folder_;
  const std::shared_ptr<const Tokenizer> bpe_ =
      std::make_shared<BpeTokenizer>(make_bpe(the_bpe(), folder_));
  const std::shared_ptr<const Tokenizer> byte_ = std::make_shared<ByteTokenizer>();
};

TEST_F(ExampleSetTest, ACompletionCountsWithItsEnd) {
  EXPECT_EQ(marked(read(example_line("the", " the")), 0, *bpe_), "the  * the* <|endoftext|>*");
  EXPECT_EQ(marked(read(example_line("ab", "c"), {.tokenizer = byte_}), 0, *byte_), "a b c* \n*");
  EXPECT_EQ(marked(read(example_line("ab", "c"), {.end = "#."}), 0, *bpe_), "a b c* #* .*");
  EXPECT_EQ(marked(read(example_line("a", "the"), {.begin_of_text = true}), 0, *bpe_),
            "<|endoftext|> a the* <|endoftext|>*");
}

TEST_F(ExampleSetTest, TheFirstTokenNeverCounts) {
  EXPECT_EQ(marked(read(example_line("", "abc")), 0, *bpe_), "a b* c* <|endoftext|>*");
  EXPECT_EQ(marked(read(example_line("", "a"), {.begin_of_text = true}), 0, *bpe_),
            "<|endoftext|> a* <|endoftext|>*");
}

TEST_F(ExampleSetTest, SpecialTokensOfPromptsAreThoseTokensOnRequest) {
  const std::string line = example_line("a<|endoftext|>", "the");
  EXPECT_EQ(read(line).tokens(0).size(), 4u);
  EXPECT_EQ(read(line, {}, {.special = false}).tokens(0).size(), 1u + 13u + 2u);
}

TEST_F(ExampleSetTest, ContentsOfMessagesAreText) {
  const ExampleSet set = read(R"({"messages": [{"role": "u", "content": "<|endoftext|>"}, )"
                              R"({"role": "assistant", "content": "aa"}]})",
                              {}, {.chat = ChatForm{.begin = "", .end = "<|endoftext|>"}});
  EXPECT_EQ(set.tokens(0).size(), 13u + 1u + 1u + 1u);
  EXPECT_EQ(set.counted_tokens(), 2);
}

TEST_F(ExampleSetTest, WhereExamplesEndIsPartOfTheHash) {
  const std::string turns =
      R"({"role": "u", "content": "a"}, {"role": "assistant", "content": "b"})";
  const ExampleForm form{.chat = ChatForm{.begin = "c", .end = "d"}};
  const std::string once = "{\"messages\": [" + turns + "]}\n";
  const std::string twice = "{\"messages\": [" + turns + ", " + turns + "]}\n";
  const ExampleSet one = read(once + twice, {}, form), other = read(twice + once, {}, form);
  // Their tokens are the same, and so are those that count.
  EXPECT_EQ(marked(one, 0, *bpe_) + " " + marked(one, 1, *bpe_),
            marked(other, 0, *bpe_) + " " + marked(other, 1, *bpe_));
  EXPECT_NE(one.hash(), other.hash());
  EXPECT_EQ(one.hash(), read(once + twice, {}, form).hash());
}

TEST_F(ExampleSetTest, ALongExampleIsCutLeftOutOrRefused) {
  const std::string lines =
      example_line("a", "bcd") + example_line("abcdef", "g") + example_line("a", "b");
  const ExampleSet cut = read(lines, {.longest = 3});
  EXPECT_EQ(cut.count(), 2);
  EXPECT_EQ(marked(cut, 0, *bpe_), "a b* c*");
  EXPECT_EQ(marked(cut, 1, *bpe_), "a b* <|endoftext|>*");
  ASSERT_EQ(cut.notes().size(), 2u);
  EXPECT_TRUE(says(cut.notes()[0], "a.jsonl: 1 example was cut at the 3 tokens of a row"));
  EXPECT_TRUE(says(cut.notes()[1], "1 example was left out: nothing that counts is within the 3"));

  const ExampleSet less = read(lines, {.longest = 3, .too_long = LongExample::kLeaveOut});
  EXPECT_EQ(less.count(), 1);
  EXPECT_EQ(less.origin(0).line, 3);
  ASSERT_EQ(less.notes().size(), 1u);
  EXPECT_TRUE(says(less.notes()[0], "2 examples were left out, longer than the 3 tokens"));

  EXPECT_TRUE(says(
      message_of<DataError>([&] { read(lines, {.longest = 3, .too_long = LongExample::kRefuse}); }),
      "a.jsonl:1: the example has 5 tokens: expected at most 3"));
  EXPECT_THAT(read(lines).notes(), IsEmpty());
}

TEST_F(ExampleSetTest, NoExamplesAreAnError) {
  EXPECT_TRUE(says(message_of<DataError>([&] { read("\n"); }), "there are no examples."));
  EXPECT_TRUE(says(message_of<DataError>([&] { read("{\n", {}, {.skip_damaged_lines = true}); }),
                   "there are no examples, "));
  EXPECT_TRUE(says(message_of<ConfigError>([&] {
                     read(example_line("a", "b"), {.tokenizer = byte_, .begin_of_text = true});
                   }),
                   "the byte tokenizer has no token that begins a text"));
}

TEST_F(ExampleSetTest, TheLastExamplesBecomeASetOfTheirOwn) {
  const std::string lines =
      example_line("a", "b") + "\n" + example_line("c", "d") + example_line("e", "f");
  ExampleSet set = read(lines);
  const ExampleSet last = set.take_last(2);
  EXPECT_EQ(set.count(), 1);
  EXPECT_EQ(set.tokens(), 3);
  EXPECT_EQ(marked(set, 0, *bpe_), "a b* <|endoftext|>*");
  EXPECT_EQ(marked(last, 1, *bpe_), "e f* <|endoftext|>*");
  EXPECT_EQ(file_and_line(last.origin(0)), (folder_ / "a.jsonl").string() + ":3");
  EXPECT_EQ(set.hash(), read(example_line("a", "b")).hash());
  EXPECT_NE(set.hash(),
            read(example_line("ab", "") + example_line("a", "c"), {}, {.skip_damaged_lines = true})
                .hash());
  EXPECT_EQ(set.take_last(0).count(), 0);
}

class CachedExamples : public ExampleSetTest {
 protected:
  ExampleSet cached(const ExampleForm& form = {}, ExampleEncoding encoding = {}) const {
    if (!encoding.tokenizer) encoding.tokenizer = bpe_;
    if (encoding.longest == 0) encoding.longest = 4;
    return {(folder_ / "*.jsonl").string(), form, encoding, TokenCache(folder_ / "cache")};
  }
  std::vector<std::filesystem::path> entries() const {
    if (!std::filesystem::exists(folder_ / "cache")) return {};
    return find_files((folder_ / "cache").string());
  }
  /// Expects the same examples, origins and notes.
  static void expect_same(const ExampleSet& a, const ExampleSet& b) {
    EXPECT_EQ(a.hash(), b.hash());
    EXPECT_EQ(a.notes(), b.notes());
    ASSERT_EQ(a.count(), b.count());
    for (int64_t i = 0; i < a.count(); ++i) {
      EXPECT_EQ(a.origin(i).file, b.origin(i).file);
      EXPECT_EQ(a.origin(i).line, b.origin(i).line);
    }
  }
};

TEST_F(CachedExamples, AreThoseOfTheFiles) {
  put_file(folder_ / "a.jsonl", example_line("the", " the") + "{\n" + example_line("a", "b"));
  put_file(folder_ / "b.jsonl", example_line("abcd", "abcd") + example_line("b", "abcdefg"));
  const ExampleForm form{.skip_damaged_lines = true};
  const ExampleSet first = cached(form);
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(first.notes().size(), 3u);
  const auto written = std::filesystem::last_write_time(entries().front());
  ExampleSet second = cached(form);
  EXPECT_EQ(std::filesystem::last_write_time(entries().front()), written);
  expect_same(second, first);
  EXPECT_EQ(second.take_last(1).count(), 1);
}

TEST_F(CachedExamples, AreReadAgainWhereFilesOrFormDiffer) {
  put_file(folder_ / "a.jsonl", example_line("the", " the"));
  (void)cached();
  size_t wanted = 1;
  for (const ExampleForm& form :
       {ExampleForm{.special = false}, ExampleForm{.skip_damaged_lines = true}}) {
    (void)cached(form);
    EXPECT_EQ(entries().size(), ++wanted);
  }
  for (const ExampleEncoding& encoding :
       {ExampleEncoding{.begin_of_text = true}, ExampleEncoding{.end = "."},
        ExampleEncoding{.longest = 9}, ExampleEncoding{.too_long = LongExample::kLeaveOut}}) {
    (void)cached({}, encoding);
    EXPECT_EQ(entries().size(), ++wanted);
  }
  put_file(folder_ / "a.jsonl", example_line("the", " a"));
  EXPECT_EQ(marked(cached(), 0, *bpe_), "the  * a* <|endoftext|>*");
  EXPECT_EQ(entries().size(), ++wanted);
  (void)cached({}, {.tokenizer = byte_});
  EXPECT_EQ(entries().size(), wanted);
}

TEST_F(CachedExamples, AreReadAgainWhereTheEntryIsNone) {
  put_file(folder_ / "a.jsonl", example_line("the", " the"));
  const ExampleSet first = cached();
  const std::filesystem::path path = entries().front();
  const std::string whole = file_content(path);
  put_file(path, whole.substr(0, whole.size() - 1));
  expect_same(cached(), first);
  EXPECT_EQ(file_content(path), whole);
}

}  // namespace
}  // namespace lockstep::train
