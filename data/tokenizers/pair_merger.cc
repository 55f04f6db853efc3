#include "data/tokenizers/pair_merger.h"

#include <algorithm>

#include "data/tokenizers/pre_tokenizer.h"

namespace lockstep::train {

std::vector<CountedText> by_frequency(const std::unordered_map<std::string, int64_t>& counts) {
  std::vector<CountedText> result;
  for (const auto& [text, count] : counts) result.push_back({text, count});
  std::ranges::sort(result, [](const CountedText& a, const CountedText& b) {
    return a.count != b.count ? a.count > b.count : a.text < b.text;
  });
  return result;
}

std::vector<CountedText> count_pieces(std::string_view text) {
  std::unordered_map<std::string, int64_t> counts;
  std::string piece;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = gpt2_piece_end(text, begin);
    piece = text.substr(begin, end - begin);
    ++counts[piece];
    begin = end;
  }
  return by_frequency(counts);
}

bool PairMerger::Candidate::operator<(const Candidate& other) const {
  if (count != other.count) return count < other.count;
  return text != other.text ? text > other.text : pair > other.pair;
}

uint32_t PairMerger::symbol(const std::string& text, size_t length) {
  const auto [place, is_new] = ids_.emplace(text, static_cast<uint32_t>(symbols_.size()));
  if (is_new) symbols_.push_back({text, length});
  return place->second;
}

void PairMerger::add_word(const std::vector<std::string>& characters, int64_t count) {
  std::vector<uint32_t> part;
  const auto flush = [&] {
    if (part.size() > 1) {
      words_.push_back({part, count});
      count_pairs(words_.size() - 1, 1, [](Pair) { return true; });
    }
    part.clear();
  };
  for (const std::string& character : characters) {
    const auto found = ids_.find(character);
    if (found == ids_.end() || part.size() == options_.longest_word) flush();
    if (found != ids_.end()) part.push_back(found->second);
  }
  flush();
}

std::optional<PairMerger::Step> PairMerger::step() {
  if (!has_begun_) {
    for (const auto& [pair, state] : pairs_) offer(pair, state.count);
    has_begun_ = true;
  }
  while (!queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    const auto found = pairs_.find(best.pair);
    if (found == pairs_.end() || found->second.count < 2) continue;
    if (found->second.count != best.count) {
      offer(best.pair, found->second.count);
      continue;
    }
    const SymbolText left = symbols_[best.pair.first];
    const SymbolText right = symbols_[best.pair.second];
    const size_t before = symbols_.size();
    merge(best.pair, symbol(best.text, left.length + right.length));
    return Step{left.text, right.text, symbols_.size() > before};
  }
  return std::nullopt;
}

/// Adds the pairs of a word to the counts, `sign` times. Pairs for which `new_here` returns true
/// record the word's index.
template <class NewHere>
void PairMerger::count_pairs(size_t index, int64_t sign, const NewHere& new_here) {
  const Word& word = words_[index];
  for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
    const Pair pair{word.symbols[i], word.symbols[i + 1]};
    PairState& state = pairs_[pair];
    state.count += sign * word.count;
    const bool noted = !state.words.empty() && state.words.back() == index;
    if (sign > 0 && !noted && new_here(pair)) state.words.push_back(index);
  }
}

void PairMerger::merge(Pair pair, uint32_t merged) {
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

void PairMerger::offer(Pair pair, int64_t count) {
  const SymbolText& left = symbols_[pair.first];
  const SymbolText& right = symbols_[pair.second];
  if (count < 2 || left.length + right.length > options_.longest_piece) return;
  queue_.push({count, left.text + right.text, pair});
}

}  // namespace lockstep::train
