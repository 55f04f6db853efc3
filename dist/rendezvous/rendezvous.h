#pragma once

#include <string>

#include "dist/rendezvous/rank_environment.h"

namespace lockstep::dist {

/// Where the ranks of a job meet, and as which of them this process comes.
struct Rendezvous {
  /// kAnyRank (dist/rendezvous/store_message.h): the first process that listens at `address`
  /// becomes rank 0, the others get the numbers that are left in the order in which they come.
  int rank = 0;
  int size = 1;
  /// "host:port": where rank 0 runs the job's store. The other ranks must reach rank 0's host by
  /// that name. With a host of "localhost" or 127.*, rank 0 can be reached on its host alone.
  std::string address;
  std::string job;     ///< ranks of other jobs are refused
  std::string secret;  ///< and those who do not know it
  /// Whether the host may get its name later than this rank starts.
  bool host_may_come = false;
  /// Whether the address is free again once all ranks have come, for those that join them later
  /// (dist/rendezvous/door.h).
  bool frees_address = false;

  friend bool operator==(const Rendezvous&, const Rendezvous&) = default;
};

/// Derives the meeting place from what launchers say. The host is the master's; without one, this
/// host, if the job has no other. The port is the master's; without one, that of the job's id, from
/// 15000 to 29999, so that jobs of one host do not meet, and 29500 for a job without an id. Throws
/// ConfigError if ranks may be on several hosts and none says where rank 0 is.
Rendezvous rendezvous_of(const RankEnvironment& environment, std::string secret);

}  // namespace lockstep::dist
