#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep::train {

struct CountedText {
  std::string text;
  int64_t count;
};

/// Texts by decreasing frequency, then by bytes, so that the order depends only on the counts.
std::vector<CountedText> by_frequency(const std::unordered_map<std::string, int64_t>& counts);

/// The different pieces of gpt2_piece_end in `text`, in this order.
std::vector<CountedText> count_pieces(std::string_view text);

/// Learns byte-pair merges (Sennrich, Haddow, Birch 2016): add characters, then words, then call
/// `step` once for each merge. The result depends only on what was added, in which order.
class PairMerger {
 public:
  struct Options {
    size_t longest_piece = SIZE_MAX;  ///< characters of a piece
    size_t longest_word = SIZE_MAX;   ///< characters; longer words are split for counting
  };
  /// A merge of two neighbours.
  struct Step {
    std::string left;
    std::string right;
    bool is_new;  ///< false if another pair gave the same piece before
  };

  explicit PairMerger(Options options) : options_(options) {}

  void add_character(const std::string& character) { symbol(character, 1); }
  /// Adds a word that occurs `count` times. It is split at characters that were not added.
  void add_word(const std::vector<std::string>& characters, int64_t count);
  /// Merges the most frequent pair, the first by bytes among equals; nothing once no pair occurs
  /// twice.
  std::optional<Step> step();

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
    bool operator<(const Candidate& other) const;
  };

  uint32_t symbol(const std::string& text, size_t length);
  template <class NewHere>
  void count_pairs(size_t index, int64_t sign, const NewHere& new_here);
  void merge(Pair pair, uint32_t merged);
  void offer(Pair pair, int64_t count);

  Options options_;
  bool has_begun_ = false;
  std::vector<SymbolText> symbols_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<Word> words_;
  std::map<Pair, PairState> pairs_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace lockstep::train
