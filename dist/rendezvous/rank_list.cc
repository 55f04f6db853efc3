#include "dist/rendezvous/rank_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep::dist {

std::string rank_list(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.empty()) return "no rank";
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  const char* before = " ";
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", before, ranks[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : "-", ranks[last]);
    before = ", ";
    i = last + 1;
  }
  return text;
}

std::vector<int> every_rank(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace lockstep::dist
