#include "train/run/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "core/base/check.h"

namespace lockstep::train {

namespace {

constexpr int64_t kLongest = int64_t{1} << 36;  // 19 hours: products of times and leaves fit
constexpr int kMostShown = 16;

/// The time that `leaves` leaves take a rank that does `of` of them in `us`: a fraction, compared
/// without rounding.
struct Work {
  int64_t us = 0;
  int64_t leaves = 0;
  int64_t of = 1;

  friend bool operator<(const Work& a, const Work& b) {
    return a.us * a.leaves * b.of < b.us * b.leaves * a.of;
  }
};

std::string counts_text(const dist::LeafDeal& deal) {
  if (deal.ranks() <= kMostShown) return to_string(deal);
  const std::vector<int64_t> counts = deal.counts();
  const auto [least, most] = std::ranges::minmax(counts);
  return fmt::format("{} to {}", least, most);
}

}  // namespace

dist::LeafDeal deal_by_speed(const dist::LeafDeal& now, std::span<const int64_t> work_us) {
  LS_ASSERT(std::cmp_equal(work_us.size(), now.ranks()));
  const std::vector<int64_t> before = now.counts();
  const auto work = [&](size_t rank, int64_t leaves) {
    return Work{std::clamp(work_us[rank], int64_t{1}, kLongest), leaves, before[rank]};
  };
  // One leaf after the other to the rank that would be done with it first.
  const auto later = [&](const std::pair<Work, size_t>& a, const std::pair<Work, size_t>& b) {
    if (b.first < a.first) return true;
    return !(a.first < b.first) && a.second > b.second;
  };
  std::priority_queue<std::pair<Work, size_t>, std::vector<std::pair<Work, size_t>>,
                      decltype(later)>
      ranks(later);
  std::vector<int64_t> counts(work_us.size(), 1);
  for (size_t rank = 0; rank < counts.size(); ++rank) ranks.emplace(work(rank, 2), rank);
  for (int64_t left = now.leaves() - now.ranks(); left > 0; --left) {
    const size_t rank = ranks.top().second;
    ranks.pop();
    ++counts[rank];
    ranks.emplace(work(rank, counts[rank] + 1), rank);
  }
  Work longest_before, longest;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    longest_before = std::max(longest_before, work(rank, before[rank]));
    longest = std::max(longest, work(rank, counts[rank]));
  }
  const auto us = [](const Work& each) {
    return static_cast<double>(each.us) * static_cast<double>(each.leaves) /
           static_cast<double>(each.of);
  };
  constexpr double kWorthIt = 0.95;
  return us(longest) <= kWorthIt * us(longest_before) ? dist::LeafDeal::of_counts(counts) : now;
}

DealtRank rank_with_most_sums(int64_t leaves, int ranks) {
  LS_ASSERT(ranks >= 1 && ranks <= leaves);
  const int64_t most = leaves - ranks + 1;
  dist::LeafRange chosen;
  std::pair<int, int64_t> sums_and_leaves;
  for (int64_t first = 0; first < leaves; ++first) {
    const dist::LeafRange range{first, std::min(first + most, leaves)};
    const int needed = (range.first > 0 ? 1 : 0) + (range.end < leaves ? 1 : 0);
    if (needed > ranks - 1) continue;
    const std::pair found(dist::stack_depth(range), range.size());
    if (found <= sums_and_leaves) continue;
    sums_and_leaves = found;
    chosen = range;
  }
  // The other ranks share what is before and behind it.
  const int64_t behind = leaves - chosen.end;
  const int64_t others = ranks - 1;
  const int64_t before = chosen.first == 0 ? 0
                         : behind == 0     ? others
                                           : std::max<int64_t>(1, others - behind);
  std::vector<int64_t> counts;
  const auto add = [&](int64_t shared, int64_t among) {
    if (among == 0) return;
    const auto even = dist::LeafDeal::even(shared, static_cast<int>(among)).counts();
    counts.insert(counts.end(), even.begin(), even.end());
  };
  add(chosen.first, before);
  counts.push_back(chosen.size());
  add(behind, others - before);
  return {dist::LeafDeal::of_counts(counts), static_cast<int>(before)};
}

std::optional<dist::LeafDeal> Balance::next(const dist::LeafDeal& now,
                                            const RankComparison& comparison) {
  LS_ASSERT(std::cmp_equal(comparison.ranks.size(), now.ranks()));
  std::vector<int64_t> work_us;
  for (const RankTimes& each : comparison.ranks) {
    work_us.push_back(std::max<int64_t>(1, std::llround(each.work_ms() * 1e3)));
  }
  const std::vector<int64_t> before = std::exchange(last_us_, work_us);
  if (before.size() != work_us.size()) return std::nullopt;
  std::ranges::transform(work_us, before, work_us.begin(),
                         [](int64_t a, int64_t b) { return std::min(a, b); });
  dist::LeafDeal deal = deal_by_speed(now, work_us);
  if (deal == now) return std::nullopt;
  last_us_.clear();
  return deal;
}

std::string deal_text(const dist::LeafDeal& now, const dist::LeafDeal& before) {
  return fmt::format("{} leaves by rank instead of {}", counts_text(now), counts_text(before));
}

}  // namespace lockstep::train
