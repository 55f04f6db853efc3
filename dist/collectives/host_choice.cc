#include "dist/collectives/host_choice.h"

#include <algorithm>
#include <bit>
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

HostWay fastest_way(const Operation& operation, const HostLayout& layout, uint64_t most_bytes) {
  constexpr double kMessage = 10e-6, kRound = 50e-6, kByte = 8.5e-9, kByteInside = 0.25e-9;
  const bool is_barrier = operation.kind == OpKind::kBarrier;
  const uint64_t growth = partial_growth(operation.dtype, operation.reduction.op);
  const uint64_t values = is_barrier ? 0 : bytes_of(operation);
  if (values * growth > most_bytes) return HostWay::kParts;
  double partials = 1, ranks = 1;  // of the host with the most
  for (const Host& host : hosts_of(operation, layout)) {
    partials = std::max(partials, host.partials / static_cast<double>(growth));
    ranks = std::max(ranks, host.ranks);
  }
  const double others = layout.hosts() - 1;
  const double bytes = partials * static_cast<double>(values * growth);
  const double inside = 2 * (ranks - 1) * bytes * kByteInside;
  const double parts =
      2 * others * partials * kMessage + 2 * kRound + 2 * bytes * others / (others + 1) * kByte;
  const double exchange = others * (partials * kMessage + bytes * kByte) + kRound + inside;
  const double depth = std::bit_width(static_cast<unsigned>(layout.hosts() - 1));
  const double tree = 2 * depth * (kMessage + kRound + bytes * kByte) + inside;
  if (operation.deal.is_empty() && tree < std::min(parts, exchange)) return HostWay::kTree;
  return is_barrier || exchange < parts ? HostWay::kExchange : HostWay::kParts;
}

}  // namespace lockstep::dist
