#pragma once

#include <filesystem>
#include <memory>

#include "dist/group/communicator.h"
#include "dist/group/process_group.h"
#include "dist/rendezvous/rank_environment.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::launcher {

/// This process among the ranks of its job.
struct Ranks {
  dist::RankEnvironment environment;
  std::unique_ptr<dist::ProcessGroup> group;              ///< null where the rank is alone
  std::shared_ptr<dist::Communicator> communicator = {};  ///< of the group

  bool leads() const { return environment.rank == 0; }
};

/// Finds out which rank this process is (dist/rendezvous/rank_environment.h) and meets the others
/// by MPI. After a failure the ranks' flight records are in `flight_folder`. Operations that others
/// keep waiting are told on standard error. Throws ConfigError for variables that contradict each
/// other or MPI, and what dist::mpi_group throws.
Ranks join_ranks(const std::filesystem::path& flight_folder);

/// Gives each rank its GPU where the config's device is "cuda": its number on its host, modulo the
/// number of GPUs that its process sees. Then the ranks' group is NCCL's, if every rank has a GPU
/// of its own and finds the library; else it stays, and rank 0 says why on standard error. All
/// ranks call it. Throws ConfigError for more ranks on a host than GPUs, unless
/// parallel.share_devices.
void take_devices(Ranks& ranks, const config::RunConfig& config);

/// Sets how long an operation between the ranks may take: the config's parallel.timeout_seconds.
void set_time_limit(const Ranks& ranks, double seconds);

/// Sets the number of threads that a rank computes with: what the config says, else the rank's part
/// of the cores that the process may use. Says so on standard error where several ranks share them.
void share_cores(const Ranks& ranks, int wanted_threads);

}  // namespace lockstep::launcher
