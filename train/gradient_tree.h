#pragma once

#include <memory>
#include <vector>

#include "train/gradient_arena.h"

namespace lockstep::train {

/// Sums the gradients of a step's leaves in the order of a fixed binary tree, whatever the number
/// of ranks will be: docs/numerics in the design calls it the one tree.
///
/// Use, each step: `begin_leaf()` before the leaf's micro-batches, `end_leaf()` after them; after
/// the last leaf `result()` holds the sum. Needs log2(leaves) + 1 arenas. Not thread-safe.
class GradientTree {
 public:
  explicit GradientTree(const std::vector<nn::NamedParameter>& parameters);

  void begin_leaf();
  /// Adds the leaf to the tree: partial sums of equal size join, the earlier one on the left.
  void end_leaf();
  /// The arena with the sum of all leaves since the last call, at least one. Where their number is
  /// no power of two, the partial sums left over join from the right. Valid until the next
  /// `begin_leaf`.
  const GradientArena& result();

 private:
  struct Partial {
    std::unique_ptr<GradientArena> arena;
    int level;  ///< sums 2^level leaves
  };

  void join_last_two();

  std::vector<nn::NamedParameter> parameters_;
  std::vector<std::unique_ptr<GradientArena>> spare_;
  std::vector<Partial> partials_;
  std::unique_ptr<GradientArena> current_;
  std::unique_ptr<GradientArena> result_;
};

}  // namespace lockstep::train
