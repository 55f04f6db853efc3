#include "dist/collectives/host_choice.h"

#include <algorithm>
#include <vector>

#include "dist/collectives/sum_order.h"
#include "dist/collectives/tree_reduction.h"

namespace lockstep::dist {

namespace {

/// Bytes of a host to and from others, as parts of the tensor.
struct Load {
  double sent = 0;
  double received = 0;
};

double busiest(const std::vector<Load>& loads) {
  double most = 0;
  for (const Load& load : loads) most = std::max({most, load.sent, load.received});
  return most;
}

/// What a host holds, and what it owns.
struct Host {
  double ranks = 0;
  double values = 0;    ///< sums of its ranks
  double partials = 0;  ///< its partial sums, in units of values
};

std::vector<Host> hosts_of(const Operation& operation, const HostLayout& layout) {
  std::vector<Host> hosts(static_cast<size_t>(layout.hosts()));
  for (int host = 0; host < layout.hosts(); ++host) {
    hosts[static_cast<size_t>(host)].ranks = layout.count(host);
  }
  if (!is_reduction(operation.kind)) return hosts;
  const SumOrder order = sum_order(layout, operation.deal);
  for (const SumOrder::Term& term : order.terms) {
    ++hosts[static_cast<size_t>(layout.host_of(term.rank))].values;
  }
  const auto growth = static_cast<double>(partial_growth(operation.dtype, operation.reduction.op));
  for (const SumOrder::Partial& partial : order.partials) {
    hosts[static_cast<size_t>(partial.host)].partials += growth;
  }
  return hosts;
}

}  // namespace

bool saves_between_hosts(const Operation& operation, const HostLayout& layout) {
  if (!layout.has_levels()) return false;
  const bool gathers = operation.kind != OpKind::kReduceScatter;
  const double ranks = layout.ranks();
  const double count = layout.hosts();
  const std::vector<Host> hosts = hosts_of(operation, layout);
  Host all;
  for (const Host& host : hosts) {
    all.values += host.values;
    all.partials += host.partials;
  }
  std::vector<Load> directly, by_hosts;
  for (const Host& host : hosts) {
    const double share = host.ranks / ranks;
    // An all_reduce by hosts is divided among hosts evenly.
    const double owned = operation.kind == OpKind::kAllReduce ? 1 / count : share;
    Load direct{host.values * (1 - share), (all.values - host.values) * share};
    Load once{host.partials * (1 - owned), (all.partials - host.partials) * owned};
    if (gathers) {
      direct.sent += share * (ranks - host.ranks);
      direct.received += host.ranks * (1 - share);
      once.sent += owned * (count - 1);
      once.received += 1 - owned;
    }
    directly.push_back(direct);
    by_hosts.push_back(once);
  }
  return busiest(by_hosts) < busiest(directly);
}

}  // namespace lockstep::dist
