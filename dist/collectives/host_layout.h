#pragma once

#include <span>
#include <vector>

namespace lockstep::dist {

/// Which ranks of a group share a host. Plans (dist/collectives/schedule.h) follow from it, so all
/// ranks of a group must have the same one. Hosts are numbered in the order of their first ranks.
class HostLayout {
 public:
  /// All ranks on one host. Requires at least one rank.
  static HostLayout one_host(int ranks);
  /// By rank: any number that names its host. Requires at least one rank.
  explicit HostLayout(std::span<const int> names);

  int ranks() const { return static_cast<int>(places_.size()); }
  int hosts() const { return static_cast<int>(ranks_.size()); }
  int host_of(int rank) const { return places_[static_cast<size_t>(rank)].host; }
  /// Number of a rank among those of its host.
  int local(int rank) const { return places_[static_cast<size_t>(rank)].local; }
  /// The ranks of a host, ascending.
  std::span<const int> ranks_of(int host) const { return ranks_[static_cast<size_t>(host)]; }
  int count(int host) const { return static_cast<int>(ranks_of(host).size()); }
  /// The lowest rank of a host.
  int leader(int host) const { return ranks_of(host).front(); }
  /// Whether there are several hosts, and several ranks on at least one of them.
  bool has_levels() const { return hosts() > 1 && hosts() < ranks(); }

  /// The rank of `host` that handles there what belongs to rank `owner`: `owner` itself on its own
  /// host. The work for another host's ranks is shared out evenly.
  int agent(int host, int owner) const;

 private:
  struct Place {
    int host = 0;
    int local = 0;
  };
  std::vector<Place> places_;            ///< by rank
  std::vector<std::vector<int>> ranks_;  ///< by host
};

}  // namespace lockstep::dist
