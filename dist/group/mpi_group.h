#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Returns the group of all ranks started by mpirun or another launcher that MPI supports.
/// Collective, once in the life of a process; waits for all ranks. Throws BackendError if Lockstep
/// was built without MPI or MPI fails, and TimeoutError if a rank does not come within the seconds
/// given by the environment variable LOCKSTEP_START_LIMIT (default 120); MPI_Init may then still be
/// running in its thread.
///
/// Data goes through shared memory within a node and by MPI between nodes
/// (dist/transport/mpi_transport.h). In addition all ranks connect to a store
/// (dist/rendezvous/store_server.h) served by rank 0, through which they learn of ranks that fail
/// or exit. Destroying the last group of a rank that has not failed waits for the other ranks to do
/// the same.
///
/// Before the ranks exchange anything else they compare Lockstep's version and build
/// (core/base/build_identity.h), LOCKSTEP_SHM and the lines "NAME: VALUE" of `alike`. If any
/// differ, all ranks throw MismatchError with the values and their ranks.
std::unique_ptr<ProcessGroup> mpi_group(const Communicator::Options& options = {},
                                        const std::string& alike = {});
/// Returns the communicator of those ranks, for groups of other kinds (dist/nccl/nccl_group.h).
/// A rank whose host has not answered for `silence`, at least 1 s, is lost.
std::shared_ptr<Communicator> mpi_communicator(
    const Communicator::Options& options = {}, const std::string& alike = {},
    std::chrono::milliseconds silence = std::chrono::seconds(10));

}  // namespace lockstep::dist
