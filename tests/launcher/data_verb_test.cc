// `lockstep data` from a user's point of view.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/data/tokenizers/tiny_tokenizers.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

class DataVerbTest : public Program {
 protected:
  DataVerbTest() {
    std::string text;
    for (int i = 0; i < 20; ++i) text += "the cat and the dog\n";
    put_file(folder_ / "text.txt", text);
    train::make_bpe(train::the_bpe(), folder_);
  }
  /// The result's output is standard output and error together.
  Result run(const std::string& arguments) const {
    return Program::run("data " + arguments + " 2>&1");
  }
};

constexpr const char* kBpe = "--tokenizer bpe --vocab vocab.json --merges merges.txt";

TEST_F(DataVerbTest, TokenizedFilesAreInspectedWithTheirText) {
  const Result made = run(fmt::format("tokenize text.txt {} -o out.bin", kBpe));
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_TRUE(says(made.output, "bpe tokenizer of 263 tokens"));
  const Result seen = run(fmt::format("inspect out.bin {} --count 3", kBpe));
  ASSERT_EQ(seen.status, 0) << seen.output;
  EXPECT_TRUE(says(seen.output, "magic 20240520, version 1"));
  EXPECT_TRUE(says(seen.output, "within the vocabulary of 263"));
  EXPECT_TRUE(says(seen.output, "first      258 32 99"));
  EXPECT_TRUE(says(seen.output, "text       \"the c\""));
}

TEST_F(DataVerbTest, NanogptPairsHoldTheWholeText) {
  const Result made =
      run("tokenize text.txt -o train.bin --format nanogpt --held-out-bytes 100 --held-out-output "
          "val.bin");
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_TRUE(says(made.output, "400 bytes in 1 file, byte tokenizer of 256 tokens: 1.000 bytes "));
  EXPECT_EQ(file_content(folder_ / "train.bin").size(), 2u * 300);
  EXPECT_EQ(file_content(folder_ / "val.bin").size(), 2u * 100);
  EXPECT_TRUE(says(run("inspect val.bin").output, "tokens     100 of 2 bytes"));
}

TEST_F(DataVerbTest, NanogptHoldsIdsOfTwoBytes) {
  const std::string vocabulary = train::the_bpe().vocabulary;
  const auto tokenize = [&](int tokens) {
    std::string text = vocabulary.substr(0, vocabulary.size() - 1);
    for (int id = 263; id < tokens; ++id) text += fmt::format(", \"id{}\": {}", id, id);
    put_file(folder_ / "vocab.json", text + "}");
    return run(fmt::format("tokenize text.txt {} -o out.bin --format nanogpt", kBpe));
  };
  const Result most = tokenize(65536);
  EXPECT_EQ(most.status, 0) << most.output;
  const Result more = tokenize(65537);
  EXPECT_EQ(more.status, 2);
  EXPECT_TRUE(says(more.output, "ids below 65536, and the vocabulary has 65537"));
}

TEST_F(DataVerbTest, JsonLinesBecomeTokensWithTheEndOfTextBetweenThem) {
  put_file(folder_ / "lines.jsonl", "{\"body\": \"the\"}\n{}\n{\"body\": \"aa\"}\n");
  const std::string command = fmt::format("tokenize lines.jsonl {} -o out.bin", kBpe);
  const Result refused = run(command + " --json-field body");
  EXPECT_EQ(refused.status, 3);
  EXPECT_TRUE(says(refused.output, "lines.jsonl:2: the object has no member \"body\""));
  const Result made = run(command + " --json-field body --skip-damaged-lines");
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_TRUE(says(made.output, "skipped 1 damaged line"));
  EXPECT_TRUE(says(made.output, "in 1 file, 2 documents, bpe tokenizer"));
  const std::string inspect = fmt::format("inspect out.bin {}", kBpe);
  EXPECT_TRUE(says(run(inspect).output, "text       \"the<|endoftext|>aa\""));
  ASSERT_EQ(run(command + " --json-field body --skip-damaged-lines --separator ' '").status, 0);
  EXPECT_TRUE(says(run(inspect).output, "text       \"the aa\""));
}

TEST_F(DataVerbTest, SentencePieceWritesItsModelAndUsesItAgain) {
  const std::string command =
      "tokenize text.txt --tokenizer sentencepiece --vocab-size 280 --model m.model -o ";
  ASSERT_EQ(run(command + "a.bin").status, 0);
  const std::string model = file_content(folder_ / "m.model");
  ASSERT_EQ(run(command + "b.bin").status, 0);
  EXPECT_EQ(file_content(folder_ / "m.model"), model);
  EXPECT_EQ(file_content(folder_ / "a.bin"), file_content(folder_ / "b.bin"));
}

TEST_F(DataVerbTest, BpeIsTrainedWhereASizeIsGivenAndUsedAgain) {
  const std::string files = "tokenize text.txt --tokenizer bpe --vocab v.json --merges m.txt ";
  EXPECT_EQ(run(files + "-o a.bin").status, 3);  // nothing is trained unasked
  const Result made = run(files + "--vocab-size 270 -o a.bin");
  ASSERT_EQ(made.status, 0) << made.output;
  const std::string merges = file_content(folder_ / "m.txt");
  EXPECT_TRUE(merges.starts_with("#version"));
  ASSERT_EQ(run(files + "-o b.bin").status, 0);
  EXPECT_EQ(file_content(folder_ / "m.txt"), merges);
  EXPECT_EQ(file_content(folder_ / "a.bin"), file_content(folder_ / "b.bin"));
}

TEST_F(DataVerbTest, BadInputEndsWithItsCode) {
  put_file(folder_ / "zero.txt", std::string("a\0b", 3));
  put_file(folder_ / "empty.txt", "");
  run("tokenize text.txt -o good.bin");
  const std::string good = file_content(folder_ / "good.bin");
  put_file(folder_ / "cut.bin", good.substr(0, good.size() - 1));
  put_file(folder_ / "magic.bin", "x" + good.substr(1));
  struct Case {
    std::string arguments;
    int status;
    std::string message;
  };
  for (const Case& wrong : std::vector<Case>{
           {"tokenize gone.txt -o x.bin", 3, "gone.txt: No such file or directory"},
           {"tokenize empty.txt -o x.bin", 3, "the text is empty"},
           {fmt::format("tokenize zero.txt {} -o x.bin", kBpe), 3, "a zero byte at byte 1"},
           {"tokenize text.txt -o no/such/x.bin", 3, "no/such/x.bin"},
           {"tokenize text.txt --tokenizer bpe -o x.bin", 2, "needs --vocab"},
           {"tokenize text.txt --tokenizer words -o x.bin", 2, "--tokenizer"},
           {"tokenize text.txt", 2, "--output"},
           {"inspect cut.bin", 3, "cut.bin: the header names 400 tokens"},
           {"inspect magic.bin --format llmc", 3, "wrong magic at byte 0"},
           {"inspect good.bin --vocabulary 100", 3, "expected ids below 100"},
           {"inspect gone.bin", 3, "gone.bin: No such file or directory"},
           {"", 2, ""}}) {
    const Result result = run(wrong.arguments);
    EXPECT_EQ(result.status, wrong.status) << wrong.arguments << "\n" << result.output;
    EXPECT_TRUE(says(result.output, wrong.message)) << wrong.arguments;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.bin"));
}

}  // namespace
}  // namespace lockstep::launcher
