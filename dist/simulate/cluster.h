#pragma once

#include <cstdint>
#include <limits>

namespace lockstep::dist {

/// A connection. Times in seconds.
struct Link {
  double bytes_per_second = std::numeric_limits<double>::infinity();  ///< in each direction
  double latency = 0;  ///< of a message without bytes
};

/// How ranks exchange tensors (collective_cost.h).
enum class Collectives : uint8_t { kDirect, kRing, kRingOrTree, kHierarchical };

/// Ranks that compute more slowly than the others (stragglers.h).
struct Stragglers {
  double deviation = 0;    ///< standard deviation of a rank's time, as a part of its mean
  double slow_hosts = 0;   ///< part of the hosts that are slow
  double slow_factor = 1;  ///< by which these compute longer
};

/// Hosts of the same kind, each with the same number of ranks, as a simulation sees them.
struct Cluster {
  int64_t hosts = 1;
  int64_t ranks_per_host = 1;
  Link inside;                  ///< of a rank to the others of its host
  Link between;                 ///< of a host to the others: all its connections together
  int64_t hosts_per_pod = 0;    ///< that reach each other at the full rate; 0: all
  double oversubscription = 1;  ///< of the connections between pods
  double congestion = 0;        ///< part of the rate lost with each doubling of the number of pods
  Collectives collectives = Collectives::kRingOrTree;
  double per_operation = 0;  ///< seconds of an operation beyond its messages
  /// Processor seconds of a byte that a rank sends (and of one that it receives), taken from the
  /// core that computes; 0 if another does it.
  double cpu_per_byte = 0;
  Stragglers stragglers;

  int64_t ranks() const { return hosts * ranks_per_host; }
};

/// Ranks that take part in an operation: `ranks_per_host` on each of `hosts`.
struct GroupShape {
  int64_t hosts = 1;
  int64_t ranks_per_host = 1;
  int64_t sharing = 1;  ///< groups like this one that use a host's connections at the same time
  int64_t stride = 1;   ///< hosts from one of the group's to its next

  int64_t ranks() const { return hosts * ranks_per_host; }
};

/// All ranks of a cluster.
inline GroupShape world_of(const Cluster& cluster) {
  return {.hosts = cluster.hosts, .ranks_per_host = cluster.ranks_per_host};
}

}  // namespace lockstep::dist
