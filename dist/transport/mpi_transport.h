#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Transport between ranks started by mpirun or another launcher that MPI supports: shared memory
/// (ShmTransport) within a node, MPI between nodes.
///
/// Everything, including `connect_mpi` and the destructor, must be called by one thread, the only
/// one that calls MPI.
///
/// The end of a process on another node is not detected: messages to and from it may stay pending.
/// `cancel` of a message between nodes cancels it if MPI still can, or waits up to 0.1 s for its
/// completion. If it does not complete, MPI is not called any more, so that it touches no memory:
/// all messages between nodes fail from then on.
///
/// The destructor calls MPI_Finalize, which is collective, unless something failed or messages are
/// pending: mpirun then sees a process that exits without it, and ends the job.
class MpiTransport : public Transport {
 public:
  /// Returns every rank's text, in the order of ranks. Collective. Throws TimeoutError if not all
  /// ranks have called it within `limit`, BackendError if MPI fails.
  virtual std::vector<std::string> all_gather_bytes(std::string text,
                                                    std::chrono::milliseconds limit) = 0;
  /// Rank and number of ranks on this node.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  /// By rank: a number that names its node.
  virtual const std::vector<int>& hosts() const = 0;
  /// Stops calling MPI: all messages between nodes fail, and the destructor does not wait for the
  /// other ranks.
  void abandon() noexcept override = 0;
};

struct MpiOptions {
  /// Whether ranks of one node use shared memory; else MPI, for comparison or if the system refuses
  /// shared memory.
  bool shared_memory = true;
  /// What must be the same on all ranks: gathered before anything depends on the options, and
  /// passed to `compare` with this rank's number. If that throws, it must do so on all ranks, and
  /// then `connect_mpi` does.
  std::string told = {};
  std::function<void(int rank, const std::vector<std::string>& told)> compare = {};
  /// Timeout for connecting the ranks after MPI_Init; `mpi_group` also applies it to MPI_Init.
  std::chrono::milliseconds start_limit = std::chrono::minutes(2);
};
/// Reads the options from the environment: LOCKSTEP_SHM, 0 or 1; LOCKSTEP_START_LIMIT, seconds.
/// Throws ConfigError.
MpiOptions mpi_options();

/// Whether Lockstep was built with MPI.
bool has_mpi() noexcept;
/// Initialises MPI unless the program has. Sets OMPI_MCA_opal_event_include=epoll in the
/// environment unless it is set, so that this library can wait for Open MPI's events. Throws
/// BackendError.
std::unique_ptr<MpiTransport> connect_mpi(const MpiOptions& options);

}  // namespace lockstep::dist
