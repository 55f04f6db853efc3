#include "dist/simulate/collective_cost.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace lockstep::dist {

namespace {

/// Group and links as numbers.
struct Terms {
  double ranks;   ///< n
  double hosts;   ///< h
  double local;   ///< l
  double inside;  ///< seconds per byte that a rank sends within its host
  double out;     ///< seconds per byte that each of the groups of a host sends to other hosts
  double inside_latency;
  double between_latency;
};

Terms terms_of(const GroupShape& group, const Cluster& cluster, bool crossing_all) {
  const double rate = rate_between(cluster, group, crossing_all);
  return {.ranks = static_cast<double>(group.ranks()),
          .hosts = static_cast<double>(group.hosts),
          .local = static_cast<double>(group.ranks_per_host),
          .inside = group.ranks_per_host > 1 ? 1 / cluster.inside.bytes_per_second : 0,
          .out = group.hosts > 1 ? static_cast<double>(group.sharing) / rate : 0,
          .inside_latency = cluster.inside.latency,
          .between_latency = cluster.between.latency};
}

CollectiveCost direct_half(double bytes, const Terms& t) {
  return {.link = std::max(bytes * (t.local - 1) / t.ranks * t.inside,
                           t.local * bytes * (t.hosts - 1) / t.hosts * t.out),
          .latency = t.hosts > 1 ? t.between_latency : t.inside_latency};
}

CollectiveCost ring_half(double bytes, const Terms& t) {
  const double sent = bytes * (t.ranks - 1) / t.ranks;
  return {.link = std::max(sent * t.inside, sent * t.out) + (t.hosts - 1) * t.between_latency +
                  (t.ranks - t.hosts) * t.inside_latency};
}

/// Segments are in both links at once, one after the other.
CollectiveCost hierarchical_half(double bytes, const Terms& t) {
  return {.link = std::max(bytes * (t.local - 1) / t.local * t.inside,
                           bytes * (t.hosts - 1) / t.hosts * t.out),
          .latency = (t.local > 1 ? t.inside_latency : 0) + (t.hosts > 1 ? t.between_latency : 0)};
}

CollectiveCost tree(double bytes, const Terms& t) {
  return {.link = std::max(2 * bytes * t.inside, 2 * bytes * t.out) +
                  2 * (t.local - 1) * t.inside_latency +
                  2 * std::ceil(std::log2(t.hosts)) * t.between_latency};
}

CollectiveCost half(double bytes, const Terms& terms, Collectives collectives) {
  switch (collectives) {
    case Collectives::kDirect:
      return direct_half(bytes, terms);
    case Collectives::kHierarchical:
      return hierarchical_half(bytes, terms);
    case Collectives::kRing:
    case Collectives::kRingOrTree:
      break;
  }
  return ring_half(bytes, terms);
}

}  // namespace

double rate_between(const Cluster& cluster, const GroupShape& group, bool crossing_all) {
  const double rate = cluster.between.bytes_per_second;
  const auto in_pod = static_cast<double>(cluster.hosts_per_pod);
  const auto span = static_cast<double>(group.hosts * group.stride);
  if (cluster.hosts_per_pod == 0 || span <= in_pod || group.hosts == 1) return rate;
  // The part of a host's messages that leave its pod.
  const double crossing = crossing_all ? (span - in_pod) / (span - 1)
                                       : std::min(1.0, static_cast<double>(group.stride) / in_pod);
  const double pods = std::ceil(span / in_pod);
  const double kept = std::pow(1 - cluster.congestion, std::log2(pods));
  return rate * kept * std::min(1.0, 1 / (cluster.oversubscription * crossing));
}

double sent_bytes(OpKind kind, double bytes, const GroupShape& group) {
  const auto ranks = static_cast<double>(group.ranks());
  return (kind == OpKind::kAllReduce ? 2 : 1) * bytes * (ranks - 1) / ranks;
}

CollectiveCost collective_cost(OpKind kind, double bytes, const GroupShape& group,
                               const Cluster& cluster) {
  LS_ASSERT(kind == OpKind::kAllReduce || kind == OpKind::kAllGather ||
            kind == OpKind::kReduceScatter);
  if (group.ranks() == 1) return {};
  const bool crossing_all = cluster.collectives == Collectives::kDirect ||
                            cluster.collectives == Collectives::kHierarchical;
  const Terms terms = terms_of(group, cluster, crossing_all);
  CollectiveCost cost = half(bytes, terms, cluster.collectives);
  if (kind == OpKind::kAllReduce) {
    cost.link *= 2;
    cost.latency *= 2;
    if (cluster.collectives == Collectives::kRingOrTree && group.hosts > 1) {
      const CollectiveCost other = tree(bytes, terms);
      if (other.seconds() < cost.seconds()) cost = other;
    }
  }
  cost.link += cluster.per_operation;
  cost.cpu = cluster.cpu_per_byte * sent_bytes(kind, bytes, group);
  return cost;
}

}  // namespace lockstep::dist
