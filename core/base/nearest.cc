#include "core/base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep {
namespace {

bool same_letter(char a, char b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return lower(a) == lower(b);
}

size_t distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: a swap looks two rows back.
  std::vector<size_t> older(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], older[j - 2] + 1);
      }
    }
    std::swap(older, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view wanted,
                                        std::span<const std::string_view> known) {
  std::optional<std::string_view> best;
  size_t closest = std::clamp<size_t>(wanted.size() / 3, 1, 4) + 1;
  for (const std::string_view name : known) {
    const size_t longer = std::max(name.size(), wanted.size());
    const size_t shorter = std::min(name.size(), wanted.size());
    if (longer - shorter >= closest) continue;  // cannot be closer, and long input stays cheap
    if (const size_t d = distance(wanted, name); d < closest) {
      closest = d;
      best = name;
    }
  }
  // At a distance of the whole length the two have nothing in common.
  if (best && closest >= wanted.size()) return std::nullopt;
  return best;
}

}  // namespace lockstep
