#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Transport between the ranks that mpirun, or another launcher that MPI knows, has started:
/// through shared memory (ShmTransport) within a node, MPI between nodes.
///
/// All of it, `connect_mpi` and the destructor too, is for one thread, the only one that calls MPI.
///
/// Nothing tells when a process on another node has ended: messages to and from it may stay
/// pending. `cancel` of a message between nodes calls it back where MPI can still do so, or waits
/// up to 0.1 s for its end. Where it does not come, MPI is not called any more, so that it touches
/// no memory: all messages between nodes fail from then on.
///
/// The destructor ends MPI, for which all ranks have to come, unless something failed or messages
/// are pending: then mpirun sees a process that ends without, and ends the job.
class MpiTransport : public Transport {
 public:
  /// Every rank calls it with a text of its own, and gets all ranks' texts, in the order of ranks.
  /// Throws TimeoutError when not all ranks have come within `limit`, BackendError when MPI fails.
  virtual std::vector<std::string> all_gather_bytes(std::string text,
                                                    std::chrono::milliseconds limit) = 0;
  /// This rank's node.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  /// From now on MPI is not called: all messages between nodes fail, and the destructor does not
  /// wait for the other ranks.
  void abandon() noexcept override = 0;
};

struct MpiOptions {
  /// Whether ranks of one node use shared memory; else MPI, for comparison and where it is refused.
  bool shared_memory = true;
  /// How long the ranks' start may take, once MPI itself has started; and MPI's own start, where
  /// `mpi_group` asks for it.
  std::chrono::milliseconds start_limit = std::chrono::minutes(2);
};
/// From the environment: LOCKSTEP_SHM, 0 or 1; LOCKSTEP_START_LIMIT, seconds. Throws ConfigError.
MpiOptions mpi_options();

/// Whether Lockstep was built with MPI.
bool has_mpi() noexcept;
/// Starts MPI, where the program has not. Sets a variable of the environment, where it is not set,
/// by which Open MPI waits for its events in a way that others can wait for, too. Throws
/// BackendError.
std::unique_ptr<MpiTransport> connect_mpi(const MpiOptions& options);

}  // namespace lockstep::dist
