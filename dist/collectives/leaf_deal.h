#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dist/collectives/leaf_tree.h"

namespace lockstep::dist {

/// Which leaves of a step each rank computes: runs of leaves in the order of ranks, at least one
/// leaf for each rank. Sums over the tree of leaves (dist/collectives/leaf_tree.h) have the same
/// bits for every deal. A value that is cheap to copy.
class LeafDeal {
 public:
  /// Makes a deal of no leaves, for operations that are not over leaves.
  LeafDeal() = default;
  /// Distributes the leaves as evenly as possible. Requires 1 <= ranks <= leaves.
  static LeafDeal even(int64_t leaves, int ranks);
  /// Rank i gets `counts[i]` leaves. Throws DistError for no ranks, and naming the rank for a count
  /// below 1.
  static LeafDeal of_counts(std::span<const int64_t> counts);

  bool is_empty() const { return shares_ == nullptr; }
  /// Number of all leaves; 0 for an empty deal.
  int64_t leaves() const { return is_empty() ? 0 : shares_->ends.back(); }
  int ranks() const { return is_empty() ? 0 : static_cast<int>(shares_->ends.size()); }
  /// Requires 0 <= rank < ranks().
  LeafRange of(int rank) const;
  /// Number of leaves of each rank.
  std::vector<int64_t> counts() const;
  /// The deal of groups of `ranks` consecutive ranks each. Requires a divisor of ranks().
  LeafDeal of_groups(int ranks) const;
  /// A well-mixed hash of the counts, equal on all machines; 0 of an even deal and of an empty one.
  uint64_t identity() const { return is_empty() ? 0 : shares_->identity; }

  friend bool operator==(const LeafDeal& a, const LeafDeal& b);

 private:
  struct Shares {
    std::vector<int64_t> ends;  ///< by rank: the leaf behind its last
    uint64_t identity = 0;
  };
  explicit LeafDeal(std::vector<int64_t> ends);

  std::shared_ptr<const Shares> shares_;
};

/// Throws DistError, naming `op`, unless the deal is of `leaves` leaves, at least one, and `ranks`
/// ranks.
void check_deal(const char* op, const LeafDeal& deal, int64_t leaves, int ranks);
/// Returns the counts, for example "5 + 3".
std::string to_string(const LeafDeal& deal);

/// Returns for each sum of the ranks, in order of ranks, how often the two on top of a stack are
/// joined after that sum is pushed, so that one is left at the end (`joins` of OrderedReduction).
/// Requires a deal that is not empty.
std::vector<uint8_t> joins_over_ranks(const LeafDeal& deal);

}  // namespace lockstep::dist
