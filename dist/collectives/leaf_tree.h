#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::dist {

// The tree in which a step's gradients are added, independent of the number of ranks. The step has
// a fixed number of leaves, numbered from 0. A subtree is a run of 2^l leaves that begins at a
// multiple of 2^l; its sum is that of its halves, the earlier one on the left. If the number of
// leaves is not a power of two, the remaining subtrees are joined from the right. Every rank has a
// run of leaves (dist/collectives/leaf_deal.h) and adds up its subtrees; adding the ranks' sums in
// this order gives bitwise the result of a single rank.

/// Leaves `first` to `end` - 1.
struct LeafRange {
  int64_t first = 0;
  int64_t end = 0;

  int64_t size() const { return end - first; }
  friend bool operator==(const LeafRange&, const LeafRange&) = default;
};

/// Returns the largest subtrees of a rank's leaves, left to right: at most 2 log2(leaves).
std::vector<LeafRange> subtrees(LeafRange range);

/// Determines the order of additions: parts of the tree are pushed from left to right and joined as
/// soon as they are the halves of a subtree.
class LeafStack {
 public:
  /// Pushes `part`, which must begin where the one before ended. Returns how often the two sums on
  /// top of the stack have to be joined now.
  int push(LeafRange part);
  /// Called after the last leaf. Returns the number of joins that leave one sum.
  int finish();
  /// The sums on the stack that are not joined yet.
  std::span<const LeafRange> sums() const { return sums_; }
  void clear() { sums_.clear(); }

 private:
  std::vector<LeafRange> sums_;
};

/// Returns the largest number of sums on the stack while a rank adds up these leaves one by one.
int stack_depth(LeafRange range);

}  // namespace lockstep::dist
