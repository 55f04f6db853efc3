#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dist/rendezvous/roll_call.h"

namespace lockstep::train {

/// What a rank that meets others again tells them of its state.
struct StateTold {
  int64_t steps = -1;     ///< that its state has done; -1: that is not whole
  int64_t finishes = -1;  ///< the same once it makes an update of which it has everything; -1: none
  int part = -1;          ///< of the model, where each rank of a group keeps one; -1: none

  std::string text() const;
  /// Reads what `text` wrote; anything else is taken for a state that is not whole.
  static StateTold of(const std::string& text);
  /// Whether its state is, or can be, that after so many steps.
  bool comes_to(int64_t step) const { return step >= 0 && (steps == step || finishes == step); }
};

/// Which ranks go on, and in which groups, where each group of `shard_size` ranks keeps one model
/// together (parallel.strategy HYBRID_SHARD): rank i of every group has part i.
///
/// The state is that after the most steps to which a rank of every part can come. Groups of which
/// all ranks are left stay together. The rank that decides leads, with ranks of groups that are
/// broken if there are such, else in place of a rank of the last whole group. Those that are then
/// left form groups with those that join, and take parts of ranks that have them.
struct Arrangement {
  std::vector<size_t> places;  ///< by new number: the place of the rank among those present
  std::vector<int> sources;    ///< by new number: the rank whose part it takes; -1: it has its own
  int64_t steps = -1;          ///< that the state has done
  std::string why;             ///< they cannot go on; empty if they can

  bool moves_parts() const;
};

/// `present`: in the order of their numbers, of which the first `ranks` were those of ranks that
/// trained; the first that is left in the order of dist::Members::Start::shard_size decides.
/// `obstacle`: why so many ranks cannot share the steps, or "".
Arrangement arrange_groups(const std::vector<dist::RollCall::Present>& present, int ranks,
                           int shard_size, const std::function<std::string(int left)>& obstacle);

}  // namespace lockstep::train
