#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/base/descriptor.h"
#include "dist/rendezvous/open_port.h"

namespace lockstep::dist {

/// Connects the ranks of a job with each other by TCP. Each rank listens, tells the others where,
/// and then connects to those with lower numbers.
///
/// Both sides of a new connection show the job's secret before it counts. Connections of strangers
/// are closed, or ignored until the ranks have met, and delay nobody.
class TcpMesh {
 public:
  /// Listens, on a port that the system chooses: on loopback alone if `local`, else on all
  /// addresses. Throws BackendError.
  TcpMesh(int rank, std::string secret, bool local);

  /// Describes to other ranks how to reach this one: its port, and its host's addresses, first
  /// those given.
  std::string description(const std::vector<std::string>& first_addresses) const {
    return port_.description(first_addresses);
  }

  /// Connects to the peers; returns the sockets by rank, empty ones for other ranks. Call once.
  /// Collective: each peer must do the same. `descriptions`, by rank; `near`, by rank: whether the
  /// rank shares this one's loopback. Throws TimeoutError, naming who is missing, at `deadline`,
  /// BackendError for a peer that cannot be reached.
  std::vector<Descriptor> connect(const std::vector<int>& peers,
                                  const std::vector<std::string>& descriptions,
                                  const std::vector<bool>& near,
                                  std::chrono::steady_clock::time_point deadline);

 private:
  int rank_;
  std::string secret_;
  OpenPort port_;
};

/// Connects this rank with `peers` by a TcpMesh whose descriptions `all_gather` exchanges: returns
/// every rank's text, by rank. Collective over all ranks, also those without peers.
std::vector<Descriptor> connect_mesh(
    int rank, const std::string& secret, const std::vector<std::string>& first_addresses,
    const std::function<std::vector<std::string>(std::string)>& all_gather,
    const std::vector<int>& peers, const std::vector<bool>& near, std::chrono::milliseconds limit);

}  // namespace lockstep::dist
