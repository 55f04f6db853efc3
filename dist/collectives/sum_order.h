#pragma once

#include <cstdint>
#include <vector>

#include "dist/collectives/host_layout.h"
#include "dist/collectives/leaf_deal.h"

namespace lockstep::dist {

/// The order in which a group adds the values of an element. It depends on the hosts of the ranks
/// and the deal of leaves alone, not on sizes, so a sum has the same bits however tensors are cut.
///
/// - Ranks of one host: in the order of ranks.
/// - Ranks of several hosts: on each host in the order of ranks; then the hosts' sums in the order
///   of a tree whose leaves are the hosts (dist/collectives/leaf_tree.h).
/// - Over leaves: in the order of their tree, for every layout and deal.
///
/// A partial sum is what a host can add by itself: the sum of its ranks' values, or over leaves
/// each largest subtree that its ranks have. Hosts exchange these.
struct SumOrder {
  /// A sum that a rank contributes: its value, or number `sum` of its subtrees.
  struct Term {
    int rank = 0;
    int sum = 0;
  };
  /// Adds the terms `first` to `first` + `joins.size()` - 1, which are all of ranks of `host`.
  struct Partial {
    int host = 0;
    size_t first = 0;
    std::vector<uint8_t> joins;  ///< of OrderedReduction, by term
  };

  std::vector<Term> terms;     ///< in the order of additions
  std::vector<uint8_t> joins;  ///< by term, of OrderedReduction; empty: one after the other
  /// In the order of additions. Empty for one host, which exchanges none.
  std::vector<Partial> partials;
  std::vector<uint8_t> partial_joins;  ///< by partial
};

/// Returns the order for the ranks of `layout`; `deal` is empty or for as many ranks.
SumOrder sum_order(const HostLayout& layout, const LeafDeal& deal);

}  // namespace lockstep::dist
