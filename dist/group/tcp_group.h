#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"
#include "dist/rendezvous/rendezvous.h"

namespace lockstep::dist {

class StoreServer;

/// The place of a rank, as found by the ranks when they met.
struct RankPlace {
  int local_rank = 0;
  int local_size = 1;
  int host_rank = 0;
  int host_count = 1;
};

/// Returns the communicator of the ranks that meet at `rendezvous`, without MPI. Collective; waits
/// for all ranks. Data goes through shared memory within a host and by TCP between hosts
/// (dist/transport/tcp_transport.h), control through the job's store
/// (dist/rendezvous/store_server.h). Before anything else the ranks compare what they must have
/// alike, as for mpi_group (dist/group/mpi_group.h), which describes `alike` and `silence`.
///
/// Throws TimeoutError, naming the missing ranks, if they have not all come within
/// LOCKSTEP_START_LIMIT seconds (default 120), MismatchError for ranks that differ or were started
/// for another number of ranks, DistError if the store refuses this rank: for another job, a wrong
/// secret, a rank that is there already; BackendError for an address that rank 0 cannot listen at,
/// or hosts that do not reach each other. `place`, if any, is set. `options.start_limit` takes the
/// place of LOCKSTEP_START_LIMIT. Rank 0 may bring the job's store, which listens at its address
/// already.
///
/// Destroying the last group of a rank that has not failed waits for the other ranks to do the
/// same.
std::shared_ptr<Communicator> tcp_communicator(
    const Rendezvous& rendezvous, const Communicator::Options& options = {},
    const std::string& alike = {}, std::chrono::milliseconds silence = std::chrono::seconds(10),
    RankPlace* place = nullptr, std::shared_ptr<StoreServer> server = nullptr);

/// What those ranks compare: Lockstep's version and build, LOCKSTEP_SHM and `alike`.
std::string told_at_start(const std::string& alike);

/// Returns the group of those ranks.
std::unique_ptr<ProcessGroup> tcp_group(const Rendezvous& rendezvous,
                                        const Communicator::Options& options = {},
                                        const std::string& alike = {});

}  // namespace lockstep::dist
