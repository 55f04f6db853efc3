// Tokenizers and GGUF files, read by the programs that they are written for.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/base/utf8.h"
#include "core/tensor/generator.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/bpe_training.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"
#include "data/tokenizers/sentencepiece_training.h"
#include "tests/train/python.h"
#include "tests/train/tiny_models.h"
#include "train/weights/gguf_model.h"

namespace lockstep::train {
namespace {

/// A text with words of several scripts, numbers and white space, for training and for comparing.
std::string mixed_text(std::mt19937& random, int words) {
  static const std::vector<std::string> kWords = {"the",
                                                  "people",
                                                  "of",
                                                  "a",
                                                  "boat's",
                                                  "we'll",
                                                  "12345",
                                                  "3.14",
                                                  "\n",
                                                  "\n\n",
                                                  "\t",
                                                  "  ",
                                                  "  x",
                                                  "caf\u00e9",
                                                  "\u65e5\u672c\u8a9e",
                                                  "\u0440\u0443\u0441",
                                                  "!?",
                                                  "\u00a0",
                                                  "\u2028",
                                                  "\U0001f600",
                                                  "\u0661\u0662",
                                                  "e\u0301",
                                                  "\x0b",
                                                  "(z)"};
  std::string text;
  for (int i = 0; i < words; ++i) {
    if (random() % 3 != 0 && i > 0) text += ' ';
    if (random() % 6 == 0) {
      append_utf8(0x21 + random() % 0x3000, text);
    } else {
      text += kWords[random() % kWords.size()];
    }
  }
  // Lockstep takes the mark of SentencePiece as bytes, which Hugging Face takes for a space.
  return text.find("\u2581") == text.npos ? text : "x";
}

TEST(TokenizerInterop, AutoTokenizerGivesTheSameIdsAndTextsBack) {
  const std::string missing = python_lacks("transformers", "transformers");
  if (!missing.empty()) GTEST_SKIP() << missing;
  std::mt19937 random(3);
  const std::string training = mixed_text(random, 20'000);
  const TrainedBpe trained = train_bpe(training, 1500);
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  tokenizers.push_back(std::make_unique<ByteTokenizer>());
  tokenizers.push_back(
      std::make_unique<BpeTokenizer>(trained.vocabulary, trained.merges, "trained"));
  tokenizers.push_back(
      std::make_unique<SentencePieceTokenizer>(train_sentencepiece(training, 14'000), "trained"));
  for (const auto& tokenizer : tokenizers) {
    const TemporaryDirectory folder;
    tokenizer->save(folder.path());
    nlohmann::json cases = nlohmann::json::array();
    for (int i = 0; i < 10'000; ++i) {
      const std::string text = mixed_text(random, 1 + static_cast<int>(random() % 12));
      cases.push_back({text, encode(*tokenizer, text)});
    }
    put_file(folder / "cases.json", cases.dump());
    EXPECT_EQ(run_python(folder, R"(
import json
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(".")
wrong = 0
for text, ids in json.load(open("cases.json")):
    wrong += tokenizer.encode(text) != ids or tokenizer.decode(ids) != text
print(wrong)
)"),
              "0\n")
        << tokenizer->name();
  }
}

TEST(GgufInterop, ItsOwnReaderFindsModelTokenizerAndWeights) {
  const std::string missing = python_lacks("gguf", "gguf");
  if (!missing.empty()) GTEST_SKIP() << missing;
  const TemporaryDirectory folder;
  manual_seed(1);
  const nn::Llama llama(tiny_llama());
  const nn::Gpt2 gpt2(tiny_gpt2());
  save_gguf(llama, nullptr, folder / "llama.gguf", DType::kF32, "llama");
  save_gguf(gpt2, nullptr, folder / "gpt2.gguf", DType::kBF16, "gpt2");
  const std::string told = run_python(folder, R"(
from gguf import GGUFReader
for name in ["llama", "gpt2"]:
    reader = GGUFReader(name + ".gguf")
    shapes = sum(int(t.n_elements) for t in reader.tensors)
    print(reader.fields["general.architecture"].contents(), len(reader.tensors), shapes)
)");
  EXPECT_EQ(told, fmt::format("llama {} {}\ngpt2 {} {}\n", llama.stored_parameters().size(),
                              llama.parameter_count(), gpt2.stored_parameters().size(),
                              gpt2.parameter_count()));
}

}  // namespace
}  // namespace lockstep::train
