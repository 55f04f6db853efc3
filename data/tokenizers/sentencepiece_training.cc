#include "data/tokenizers/sentencepiece_training.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/utf8.h"
#include "data/tokenizers/pair_merger.h"
#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/sentencepiece_model.pb.h"

namespace lockstep::train {
namespace {

using sentencepiece::Model;
using sentencepiece::Piece;

constexpr double kCoverage = 0.9995;
constexpr size_t kLongestPiece = 16;  // characters, as in SentencePiece
constexpr size_t kLongestWord = 64;   // characters; longer words are split for counting
constexpr int64_t kReserved = 3 + 256;

/// Splits a word into characters, with marks for spaces. Those that can only be encoded as bytes
/// are empty: control characters, U+2581 and bytes that are not UTF-8.
std::vector<std::string> characters_of(std::string_view word) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < word.size();) {
    const CodePoint point = code_point_at(word, at);
    std::string character(word.substr(at, static_cast<size_t>(point.length)));
    at += character.size();
    if (!point.valid || point.value < 0x20 || character == kSpaceMark) character.clear();
    characters.push_back(character == " " ? std::string(kSpaceMark) : std::move(character));
  }
  return characters;
}

std::vector<CountedText> alphabet_of(const std::vector<CountedText>& words) {
  std::unordered_map<std::string, int64_t> counts;
  int64_t total = 0;
  for (const CountedText& word : words) {
    for (const std::string& character : characters_of(word.text)) {
      if (character.empty()) continue;
      counts[character] += word.count;
      total += word.count;
    }
  }
  std::vector<CountedText> alphabet = by_frequency(counts);
  int64_t covered = 0;
  size_t kept = 0;
  while (kept < alphabet.size() &&
         static_cast<double>(covered) < kCoverage * static_cast<double>(total)) {
    covered += alphabet[kept++].count;
  }
  alphabet.resize(kept);
  return alphabet;
}

void add(Model& model, std::string text, Piece::Type type, float score) {
  Piece& piece = *model.add_pieces();
  piece.set_text(std::move(text));
  piece.set_type(type);
  piece.set_score(score);
}

std::string serialized(const std::vector<std::string>& pieces) {
  Model model;
  add(model, "<unk>", Piece::UNKNOWN, 0);
  add(model, "<s>", Piece::CONTROL, 0);
  add(model, "</s>", Piece::CONTROL, 0);
  for (int byte = 0; byte < 256; ++byte) {
    add(model, fmt::format("<0x{:02X}>", byte), Piece::BYTE, 0);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    add(model, pieces[i], Piece::NORMAL, -static_cast<float>(i));
  }
  sentencepiece::Trainer& trainer = *model.mutable_trainer();
  trainer.set_kind(sentencepiece::Trainer::BPE);
  trainer.set_vocab_size(model.pieces_size());
  trainer.set_byte_fallback(true);
  trainer.set_unk_id(0);
  trainer.set_bos_id(1);
  trainer.set_eos_id(2);
  trainer.set_pad_id(-1);
  sentencepiece::Normalizer& normalizer = *model.mutable_normalizer();
  normalizer.set_name("identity");
  normalizer.set_add_dummy_prefix(false);
  normalizer.set_remove_extra_whitespaces(false);
  normalizer.set_escape_whitespaces(true);
  return model.SerializeAsString();
}

}  // namespace

std::string train_sentencepiece(std::string_view text, int64_t vocabulary) {
  const std::vector<CountedText> words = count_pieces(text);
  const std::vector<CountedText> alphabet = alphabet_of(words);
  const int64_t least = kReserved + std::ssize(alphabet);
  LS_CHECK(vocabulary >= least, DataError,
           "[tokenizer] a SentencePiece vocabulary of {} is too small for this text: expected at "
           "least {} for 3 special pieces, 256 bytes and {} characters.",
           vocabulary, least, alphabet.size());
  PairMerger merger({.longest_piece = kLongestPiece, .longest_word = kLongestWord});
  for (const CountedText& character : alphabet) merger.add_character(character.text);
  for (const CountedText& word : words) merger.add_word(characters_of(word.text), word.count);
  std::vector<std::string> pieces;
  while (least + std::ssize(pieces) < vocabulary) {
    const std::optional<PairMerger::Step> step = merger.step();
    if (!step) break;
    if (step->is_new) pieces.push_back(step->left + step->right);
  }
  for (const CountedText& character : alphabet) pieces.push_back(character.text);
  return serialized(pieces);
}

}  // namespace lockstep::train
