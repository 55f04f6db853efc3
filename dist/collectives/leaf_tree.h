#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::dist {

// The one tree in which a step's gradients are added, whatever the number of ranks. The step has a
// fixed number of leaves, numbered from 0. A subtree is a run of 2^l leaves that begins at a
// multiple of 2^l; its sum is that of its halves, the earlier one on the left. Where the number of
// leaves is no power of two, the subtrees left over join from the right. Every rank has a run of
// leaves and adds up its subtrees; who adds the ranks' sums, in this order, gets the bits that one
// rank alone would get.

/// Leaves `first` to `end` - 1.
struct LeafRange {
  int64_t first = 0;
  int64_t end = 0;

  int64_t size() const { return end - first; }
  friend bool operator==(const LeafRange&, const LeafRange&) = default;
};

/// The leaves of a rank: whole ones, as even as they go. There are at most as many ranks as leaves.
LeafRange leaves_of_rank(int64_t leaves, int rank, int ranks);

/// The largest subtrees of a rank's leaves, left to right: at most 2 log2(leaves).
std::vector<LeafRange> subtrees(LeafRange range);

/// Keeps the order of additions: parts of the tree come from left to right, and are joined as soon
/// as they can be.
class LeafStack {
 public:
  /// Puts `part` on top, which must begin where the one before ended. Returns how often the two
  /// sums on top join now.
  int push(LeafRange part);
  /// How often they join at the end, when all leaves have come.
  int finish();
  /// The sums that stand side by side.
  std::span<const LeafRange> sums() const { return sums_; }
  void clear() { sums_.clear(); }

 private:
  std::vector<LeafRange> sums_;
};

/// For the sums that the ranks have, one after another: how often the two on top of a stack join
/// after each was put there, so that one is left at the end.
std::vector<uint8_t> joins_over_ranks(int64_t leaves, int ranks);
/// The most sums that stand side by side while a rank adds up these leaves one by one.
int stack_depth(LeafRange range);

}  // namespace lockstep::dist
