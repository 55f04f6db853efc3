#include "data/tokenizers/sentencepiece_training.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/utf8.h"
#include "data/tokenizers/pre_tokenizer.h"
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

struct Counted {
  std::string text;
  int64_t count;
};

/// Orders by decreasing frequency, then by bytes, so that the order depends only on the text.
bool more_frequent(const Counted& a, const Counted& b) {
  return a.count != b.count ? a.count > b.count : a.text < b.text;
}

std::vector<Counted> sorted(const std::unordered_map<std::string, int64_t>& counts) {
  std::vector<Counted> result;
  for (const auto& [text, count] : counts) result.push_back({text, count});
  std::ranges::sort(result, more_frequent);
  return result;
}

std::vector<Counted> count_words(std::string_view text) {
  std::unordered_map<std::string, int64_t> counts;
  std::string word;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = gpt2_piece_end(text, begin);
    word = text.substr(begin, end - begin);
    ++counts[word];
    begin = end;
  }
  return sorted(counts);
}

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

std::vector<Counted> alphabet_of(const std::vector<Counted>& words) {
  std::unordered_map<std::string, int64_t> counts;
  int64_t total = 0;
  for (const Counted& word : words) {
    for (const std::string& character : characters_of(word.text)) {
      if (character.empty()) continue;
      counts[character] += word.count;
      total += word.count;
    }
  }
  std::vector<Counted> alphabet = sorted(counts);
  int64_t covered = 0;
  size_t kept = 0;
  while (kept < alphabet.size() &&
         static_cast<double>(covered) < kCoverage * static_cast<double>(total)) {
    covered += alphabet[kept++].count;
  }
  alphabet.resize(kept);
  return alphabet;
}

/// Learns merges, one per call of `step`.
class PairMerger {
 public:
  PairMerger(const std::vector<Counted>& words, const std::vector<Counted>& alphabet) {
    for (const Counted& character : alphabet) symbol(character.text, 1);
    for (const Counted& word : words) add_word(word);
    for (const auto& [pair, state] : pairs_) offer(pair, state.count);
  }

  /// Merges the most frequent pair. Returns the new piece, or an empty string if another pair gave
  /// the same piece before. Sets `more` to false once no pair occurs twice.
  std::string step(bool& more) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end() || found->second.count < 2) continue;
      if (found->second.count != best.count) {
        offer(best.pair, found->second.count);
        continue;
      }
      const size_t before = symbols_.size();
      const uint32_t merged =
          symbol(best.text, symbols_[best.pair.first].length + symbols_[best.pair.second].length);
      merge(best.pair, merged);
      return symbols_.size() > before ? best.text : std::string();
    }
    more = false;
    return {};
  }

 private:
  using Pair = std::pair<uint32_t, uint32_t>;
  struct SymbolText {
    std::string text;
    size_t length;  ///< in characters
  };
  struct Word {
    std::vector<uint32_t> symbols;
    int64_t count;
  };
  struct PairState {
    int64_t count = 0;
    std::vector<size_t> words;  ///< indices of the words in which it occurs or occurred
  };
  struct Candidate {
    int64_t count;
    std::string text;
    Pair pair;
    /// std::priority_queue returns the largest first.
    bool operator<(const Candidate& other) const {
      if (count != other.count) return count < other.count;
      return text != other.text ? text > other.text : pair > other.pair;
    }
  };

  uint32_t symbol(const std::string& text, size_t length) {
    const auto [place, is_new] = ids_.emplace(text, static_cast<uint32_t>(symbols_.size()));
    if (is_new) symbols_.push_back({text, length});
    return place->second;
  }

  /// Adds a word, split at characters outside the alphabet.
  void add_word(const Counted& word) {
    std::vector<uint32_t> part;
    const auto flush = [&] {
      if (part.size() > 1) {
        words_.push_back({part, word.count});
        count_pairs(words_.size() - 1, 1, [](Pair) { return true; });
      }
      part.clear();
    };
    for (const std::string& character : characters_of(word.text)) {
      const auto found = ids_.find(character);
      if (found == ids_.end() || part.size() == kLongestWord) flush();
      if (found != ids_.end()) part.push_back(found->second);
    }
    flush();
  }

  /// Adds the pairs of a word to the counts, `sign` times. Pairs for which `new_here` returns true
  /// record the word's index.
  template <class NewHere>
  void count_pairs(size_t index, int64_t sign, const NewHere& new_here) {
    const Word& word = words_[index];
    for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
      const Pair pair{word.symbols[i], word.symbols[i + 1]};
      PairState& state = pairs_[pair];
      state.count += sign * word.count;
      const bool noted = !state.words.empty() && state.words.back() == index;
      if (sign > 0 && !noted && new_here(pair)) state.words.push_back(index);
    }
  }

  void merge(Pair pair, uint32_t merged) {
    const std::vector<size_t> where = std::move(pairs_[pair].words);
    const auto touches = [&](Pair p) { return p.first == merged || p.second == merged; };
    std::vector<Pair> changed;
    for (const size_t index : where) {
      count_pairs(index, -1, touches);
      std::vector<uint32_t>& symbols = words_[index].symbols;
      size_t out = 0;
      for (size_t i = 0; i < symbols.size(); ++i) {
        const bool here =
            i + 1 < symbols.size() && symbols[i] == pair.first && symbols[i + 1] == pair.second;
        symbols[out++] = here ? merged : symbols[i];
        if (here) ++i;
      }
      symbols.resize(out);
      count_pairs(index, 1, touches);
      for (size_t i = 0; i + 1 < out; ++i) {
        if (touches({symbols[i], symbols[i + 1]})) changed.emplace_back(symbols[i], symbols[i + 1]);
      }
    }
    pairs_.erase(pair);
    std::ranges::sort(changed);
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const Pair& p : changed) offer(p, pairs_[p].count);
  }

  void offer(Pair pair, int64_t count) {
    const SymbolText& left = symbols_[pair.first];
    const SymbolText& right = symbols_[pair.second];
    if (count < 2 || left.length + right.length > kLongestPiece) return;
    queue_.push({count, left.text + right.text, pair});
  }

  std::vector<SymbolText> symbols_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<Word> words_;
  std::map<Pair, PairState> pairs_;
  std::priority_queue<Candidate> queue_;
};

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
  const std::vector<Counted> words = count_words(text);
  const std::vector<Counted> alphabet = alphabet_of(words);
  const int64_t least = kReserved + std::ssize(alphabet);
  LS_CHECK(vocabulary >= least, DataError,
           "[tokenizer] a SentencePiece vocabulary of {} is too small for this text: expected at "
           "least {} for 3 special pieces, 256 bytes and {} characters.",
           vocabulary, least, alphabet.size());
  PairMerger merger(words, alphabet);
  std::vector<std::string> pieces;
  for (bool more = true; more && least + std::ssize(pieces) < vocabulary;) {
    std::string piece = merger.step(more);
    if (!piece.empty()) pieces.push_back(std::move(piece));
  }
  for (const Counted& character : alphabet) pieces.push_back(character.text);
  return serialized(pieces);
}

}  // namespace lockstep::train
