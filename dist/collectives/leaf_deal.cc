#include "dist/collectives/leaf_deal.h"

#include <fmt/ranges.h>

#include <iterator>
#include <utility>

#include "core/base/check.h"
#include "core/base/hash_words.h"

namespace lockstep::dist {

namespace {

std::vector<int64_t> even_ends(int64_t leaves, int64_t ranks) {
  std::vector<int64_t> ends;
  ends.reserve(static_cast<size_t>(ranks));
  for (int64_t rank = 1; rank <= ranks; ++rank) ends.push_back(leaves * rank / ranks);
  return ends;
}

}  // namespace

LeafDeal::LeafDeal(std::vector<int64_t> ends) {
  uint64_t identity = 0;
  if (ends != even_ends(ends.back(), std::ssize(ends))) {
    const std::vector<uint64_t> words(ends.begin(), ends.end());
    identity = hash_words(words);
  }
  shares_ = std::make_shared<const Shares>(Shares{std::move(ends), identity});
}

LeafDeal LeafDeal::even(int64_t leaves, int ranks) {
  LS_ASSERT(ranks >= 1 && ranks <= leaves);
  return LeafDeal(even_ends(leaves, ranks));
}

LeafDeal LeafDeal::of_counts(std::span<const int64_t> counts) {
  LS_CHECK(!counts.empty(), DistError, "[leaf_deal] expected at least one rank, got none.");
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    LS_CHECK(counts[rank] >= 1, DistError,
             "[leaf_deal] rank {}: expected at least one leaf, got {}. Leave the rank out, or give "
             "it one.",
             rank, counts[rank]);
    ends.push_back(end += counts[rank]);
  }
  return LeafDeal(std::move(ends));
}

LeafRange LeafDeal::of(int rank) const {
  LS_ASSERT(rank >= 0 && rank < ranks());
  const auto index = static_cast<size_t>(rank);
  return {index == 0 ? 0 : shares_->ends[index - 1], shares_->ends[index]};
}

std::vector<int64_t> LeafDeal::counts() const {
  std::vector<int64_t> counts;
  for (int rank = 0; rank < ranks(); ++rank) counts.push_back(of(rank).size());
  return counts;
}

LeafDeal LeafDeal::of_groups(int ranks) const {
  LS_ASSERT(ranks >= 1 && this->ranks() % ranks == 0);
  std::vector<int64_t> ends;
  for (int last = ranks - 1; last < this->ranks(); last += ranks) ends.push_back(of(last).end);
  return LeafDeal(std::move(ends));
}

bool operator==(const LeafDeal& a, const LeafDeal& b) {
  if (a.shares_ == b.shares_) return true;
  return !a.is_empty() && !b.is_empty() && a.shares_->ends == b.shares_->ends;
}

void check_deal(const char* op, const LeafDeal& deal, int64_t leaves, int ranks) {
  LS_CHECK(leaves > 0, DistError,
           "[{}] deal: expected a sum over a tree of leaves, got one in the order of ranks, whose "
           "bits depend on which rank has which leaf. Set tree_leaves.",
           op);
  LS_CHECK(deal.leaves() == leaves && deal.ranks() == ranks, DistError,
           "[{}] deal: expected {} leaves for {} ranks, got {} for {}.", op, leaves, ranks,
           deal.leaves(), deal.ranks());
}

std::string to_string(const LeafDeal& deal) {
  return fmt::format("{}", fmt::join(deal.counts(), " + "));
}

std::vector<uint8_t> joins_over_ranks(const LeafDeal& deal) {
  LeafStack stack;
  std::vector<uint8_t> joins;
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    for (const LeafRange& sum : subtrees(deal.of(rank))) {
      joins.push_back(static_cast<uint8_t>(stack.push(sum)));
    }
  }
  joins.back() = static_cast<uint8_t>(joins.back() + stack.finish());
  return joins;
}

}  // namespace lockstep::dist
