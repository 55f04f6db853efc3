#include "dist/collectives/leaf_tree.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace lockstep::dist {

namespace {

/// Whether the two ranges are the halves of a subtree.
bool are_halves(const LeafRange& left, const LeafRange& right) {
  return left.size() == right.size() && left.first % (2 * left.size()) == 0;
}

}  // namespace

int LeafStack::push(LeafRange part) {
  LS_ASSERT(part.size() > 0 && (sums_.empty() || sums_.back().end == part.first));
  sums_.push_back(part);
  int joins = 0;
  while (sums_.size() > 1 && are_halves(sums_[sums_.size() - 2], sums_.back())) {
    sums_[sums_.size() - 2].end = sums_.back().end;
    sums_.pop_back();
    ++joins;
  }
  return joins;
}

int LeafStack::finish() {
  if (sums_.empty()) return 0;
  const auto joins = static_cast<int>(sums_.size()) - 1;
  sums_ = {{sums_.front().first, sums_.back().end}};
  return joins;
}

std::vector<LeafRange> subtrees(LeafRange range) {
  LeafStack stack;
  for (int64_t leaf = range.first; leaf < range.end; ++leaf) stack.push({leaf, leaf + 1});
  return {stack.sums().begin(), stack.sums().end()};
}

int stack_depth(LeafRange range) {
  LeafStack stack;
  size_t most = 0;
  for (int64_t leaf = range.first; leaf < range.end; ++leaf) {
    most = std::max(most, stack.sums().size() + 1);
    stack.push({leaf, leaf + 1});
  }
  return static_cast<int>(most);
}

}  // namespace lockstep::dist
