#include "data/tokenizers/bpe_training.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "data/tokenizers/bpe_vocabulary.h"
#include "data/tokenizers/pair_merger.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {
namespace {

std::vector<std::string> split_bytes(const std::string& word) {
  std::vector<std::string> bytes;
  for (const char c : word) bytes.emplace_back(1, c);
  return bytes;
}

}  // namespace

TrainedBpe train_bpe(std::string_view text, int64_t vocabulary) {
  constexpr int64_t kLeast = 256 + 1;
  LS_CHECK(vocabulary >= kLeast, DataError,
           "[tokenizer] a BPE vocabulary of {} is too small: expected at least {}, for 256 bytes "
           "and {}.",
           vocabulary, kLeast, kEndOfText);
  PairMerger merger({});
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.emplace_back(1, static_cast<char>(byte));
    merger.add_character(tokens.back());
  }
  for (const CountedText& word : count_pieces(text)) {
    merger.add_word(split_bytes(word.text), word.count);
  }
  std::string merges = "#version: 0.2\n";
  while (std::ssize(tokens) + 1 < vocabulary) {
    const auto step = merger.step();
    if (!step) break;
    merges += fmt::format("{} {}\n", written_bytes(step->left), written_bytes(step->right));
    if (step->is_new) tokens.push_back(step->left + step->right);
  }
  std::string ids = "{";
  int64_t next = 0;
  for (const std::string& token : tokens) {
    ids += fmt::format("{}: {}, ", nlohmann::json(written_bytes(token)).dump(), next++);
  }
  ids += fmt::format("{}: {}}}\n", nlohmann::json(kEndOfText).dump(), next);
  return {std::move(ids), std::move(merges)};
}

}  // namespace lockstep::train
