#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

namespace lockstep::train {

/// A run of text that is one token so far: bytes [begin, end).
struct Symbol {
  uint32_t id = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
};

/// Result of merging two neighbours. Lower ranks are merged first.
struct Merge {
  uint32_t rank = 0;
  uint32_t id = 0;
};

/// Byte-pair encoding (Sennrich, Haddow, Birch 2016): as long as neighbours can be merged, merges
/// the pair of lowest rank, the leftmost among equals. `join(left, right)` returns the merge of two
/// adjacent symbols, or nothing. O(n log n) for n symbols.
template <class Join>
void merge_symbols(std::vector<Symbol>& symbols, const Join& join) {
  struct Candidate {
    uint32_t rank, left, right, left_id, right_id, id;
    /// Reversed, since std::priority_queue returns the largest first.
    bool operator<(const Candidate& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };
  constexpr uint32_t kNone = UINT32_MAX;
  const auto count = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t> previous(count), next(count);
  std::vector<Candidate> storage;
  storage.reserve(count);
  std::priority_queue<Candidate> queue({}, std::move(storage));
  const auto consider = [&](uint32_t left, uint32_t right) {
    if (left == kNone || right == kNone) return;
    const std::optional<Merge> merge = join(symbols[left], symbols[right]);
    if (merge) {
      queue.push({merge->rank, left, right, symbols[left].id, symbols[right].id, merge->id});
    }
  };
  for (uint32_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == count ? kNone : i + 1;
    consider(i, next[i]);
  }
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    Symbol& right = symbols[best.right];
    // Skip a stale candidate: a merge has since changed or emptied one of its sides.
    const bool stale = left.begin == left.end || right.begin == right.end ||
                       next[best.left] != best.right || left.id != best.left_id ||
                       right.id != best.right_id;
    if (stale) continue;
    left.id = best.id;
    left.end = right.end;
    right.begin = right.end;
    next[best.left] = next[best.right];
    if (next[best.left] != kNone) previous[next[best.left]] = best.left;
    consider(previous[best.left], best.left);
    consider(best.left, next[best.left]);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.begin == symbol.end; });
}

}  // namespace lockstep::train
