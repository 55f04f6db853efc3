#include "dist/collectives/sum_order.h"

#include "core/base/check.h"
#include "dist/collectives/leaf_tree.h"

namespace lockstep::dist {

namespace {

using Term = SumOrder::Term;
using Partial = SumOrder::Partial;

void finish(LeafStack& stack, std::vector<uint8_t>& joins) {
  joins.back() = static_cast<uint8_t>(joins.back() + stack.finish());
}

SumOrder order_over_ranks(const HostLayout& layout) {
  SumOrder order;
  if (layout.hosts() == 1) {
    for (int rank = 0; rank < layout.ranks(); ++rank) order.terms.push_back({rank, 0});
    return order;
  }
  LeafStack hosts;
  for (int host = 0; host < layout.hosts(); ++host) {
    Partial partial{host, order.terms.size(), {}};
    for (const int rank : layout.ranks_of(host)) {
      partial.joins.push_back(partial.joins.empty() ? 0 : 1);
      order.terms.push_back({rank, 0});
    }
    order.partials.push_back(std::move(partial));
    order.partial_joins.push_back(static_cast<uint8_t>(hosts.push({host, host + 1})));
  }
  finish(hosts, order.partial_joins);
  for (size_t i = 0; i < order.partials.size(); ++i) {
    const std::vector<uint8_t>& own = order.partials[i].joins;
    order.joins.insert(order.joins.end(), own.begin(), own.end());
    order.joins.back() = static_cast<uint8_t>(order.joins.back() + order.partial_joins[i]);
  }
  return order;
}

/// The ranks from `first` on that are neighbours on its host: returns the one behind the last.
int end_of_run(const HostLayout& layout, int first) {
  int end = first + 1;
  while (end < layout.ranks() && layout.host_of(end) == layout.host_of(first)) ++end;
  return end;
}

SumOrder order_over_leaves(const HostLayout& layout, const LeafDeal& deal) {
  SumOrder order;
  order.joins = joins_over_ranks(deal);
  std::vector<LeafRange> sums;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    int number = 0;
    for (const LeafRange& sum : subtrees(deal.of(rank))) {
      order.terms.push_back({rank, number++});
      sums.push_back(sum);
    }
  }
  if (layout.hosts() == 1) return order;
  LeafStack all;
  size_t term = 0;
  for (int rank = 0; rank < layout.ranks();) {
    const int end = end_of_run(layout, rank);
    for (const LeafRange& whole : subtrees({deal.of(rank).first, deal.of(end - 1).end})) {
      Partial partial{layout.host_of(rank), term, {}};
      LeafStack part;
      for (; term < sums.size() && sums[term].end <= whole.end; ++term) {
        partial.joins.push_back(static_cast<uint8_t>(part.push(sums[term])));
      }
      LS_ASSERT(part.sums().size() == 1);
      order.partials.push_back(std::move(partial));
      order.partial_joins.push_back(static_cast<uint8_t>(all.push(whole)));
    }
    rank = end;
  }
  finish(all, order.partial_joins);
  return order;
}

}  // namespace

SumOrder sum_order(const HostLayout& layout, const LeafDeal& deal) {
  LS_ASSERT(deal.is_empty() || deal.ranks() == layout.ranks());
  return deal.is_empty() ? order_over_ranks(layout) : order_over_leaves(layout, deal);
}

}  // namespace lockstep::dist
