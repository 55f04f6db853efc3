#include "configs/data_checks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

/// Error in the smallest config with examples after `assignments`, without its place.
std::string examples_problem(std::vector<std::string> assignments) {
  assignments.insert(assignments.begin(), "data.examples.path=sft.jsonl");
  try {
    smallest_with(assignments);
  } catch (const SourceError& e) {
    return e.problem();
  }
  return "no error";
}

TEST(Examples, DefaultsAreTheDocumentedOnes) {
  const ExampleData examples = smallest_with({"data.examples.path=sft.jsonl"}).data().examples();
  EXPECT_EQ(examples.completion().prompt(), "prompt");
  EXPECT_EQ(examples.completion().completion(), "completion");
  EXPECT_EQ(examples.completion().end(), "");
  EXPECT_TRUE(examples.completion().special_tokens());
  EXPECT_EQ(examples.rows(), ExampleData::PACKED);
  EXPECT_EQ(examples.too_long(), ExampleData::CUT);
  EXPECT_TRUE(examples.tokenizer().has_byte());
  const ExampleData chat =
      smallest_with({"data.examples.path=a.jsonl", "data.examples.chat={}"}).data().examples();
  EXPECT_EQ(chat.chat().begin(), "<|im_start|>{role}\n");
  EXPECT_EQ(chat.chat().end(), "<|im_end|>\n");
  EXPECT_EQ(chat.chat().trained_role(), "assistant");
}

TEST(Examples, PathsAndMembersMustHaveNames) {
  EXPECT_EQ(examples_problem({}), "no error");
  EXPECT_EQ(examples_problem({"data.examples.path="}),
            "data.examples.path is empty: expected the path of a file.");
  EXPECT_EQ(examples_problem({"data.examples.completion.completion="}),
            "data.examples.completion.completion is empty: expected the name of a member of each "
            "line's object.");
  EXPECT_EQ(examples_problem({"data.examples.chat.messages="}),
            "data.examples.chat.messages is empty: expected the name of a member of each line's "
            "object.");
  EXPECT_EQ(examples_problem({"data.examples.chat.trained_role="}),
            "data.examples.chat.trained_role is empty: expected a role.");
}

TEST(Examples, TokenizersAreThoseOfFiles) {
  EXPECT_EQ(examples_problem({"data.examples.tokenizer.bpe={}"}),
            "data.examples.tokenizer.bpe.vocab is empty: expected the path of a file.");
  EXPECT_EQ(examples_problem({"data.examples.tokenizer.sentencepiece={}"}),
            "data.examples.tokenizer.sentencepiece.model is empty: expected the path of a file.");
  EXPECT_EQ(examples_problem({"data.examples.tokenizer.sentencepiece.model=tokenizer.model"}),
            "no error");
  EXPECT_EQ(examples_problem({"model.gpt2.vocab_size=100"}),
            "model.gpt2.vocab_size is 100: text is read as bytes, so expected at least 256.");
}

TEST(Attention, IsWithinExamplesAndAcrossDocumentsByDefault) {
  EXPECT_EQ(smallest_with({}).data().attention(), DataConfig::ACROSS_DOCUMENTS);
  EXPECT_EQ(smallest_with({"data.examples.path=a.jsonl"}).data().attention(),
            DataConfig::WITHIN_DOCUMENTS);
}

TEST(Attention, WithinDocumentsNeedsATokenBetweenThem) {
  const auto problem = [](std::vector<std::string> assignments) -> std::string {
    assignments.push_back("data.attention=WITHIN_DOCUMENTS");
    try {
      smallest_with(assignments);
    } catch (const SourceError& e) {
      return e.problem();
    }
    return "no error";
  };
  EXPECT_EQ(problem({}),
            "data.attention is WITHIN_DOCUMENTS, but random tokens have no documents: expected "
            "data.examples, or text or shards with a tokenizer that has an end-of-text token. "
            "Choose ACROSS_DOCUMENTS.");
  EXPECT_NE(problem({"data.text.path=a.txt"}).find("but no byte stands between documents"),
            std::string::npos);
  const std::string bpe = "data.text.tokenizer.bpe={}";
  EXPECT_EQ(problem({"data.text.path=a.jsonl", bpe}), "no error");
  EXPECT_NE(problem({"data.text.path=a.jsonl", bpe, "data.text.json_lines.separator=x"}),
            "no error");
}

}  // namespace
}  // namespace lockstep::config
