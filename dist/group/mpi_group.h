#pragma once

#include <memory>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// The group of all ranks that mpirun, or another launcher that MPI knows, has started. All of them
/// call it, once in the life of a process, and go on when all have come. Throws BackendError where
/// Lockstep was built without MPI or MPI fails, TimeoutError when a rank does not come within
/// LOCKSTEP_START_LIMIT seconds of the environment (120): then MPI may be left as it was, starting.
///
/// Data goes through shared memory within a node and by MPI between nodes
/// (dist/transport/mpi_transport.h). Beside it, rank 0 serves a store
/// (dist/rendezvous/store_server.h) that all ranks are connected to, by which a rank that fails or
/// ends is known to the others. Destroying the last group of a rank that has not failed waits for
/// the other ranks to do the same.
std::unique_ptr<ProcessGroup> mpi_group(const Communicator::Options& options = {});
/// What connects the ranks there, for groups of other kinds (dist/nccl/nccl_group.h).
std::shared_ptr<Communicator> mpi_communicator(const Communicator::Options& options = {});

}  // namespace lockstep::dist
