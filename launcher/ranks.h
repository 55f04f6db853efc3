#pragma once

#include <filesystem>
#include <memory>

#include "dist/process_group.h"
#include "dist/rank_environment.h"

namespace lockstep::launcher {

/// This process among the ranks of its job.
struct Ranks {
  dist::RankEnvironment environment;
  std::unique_ptr<dist::ProcessGroup> group;  ///< null where the rank is alone

  bool leads() const { return environment.rank == 0; }
};

/// Finds out which rank this process is (dist/rank_environment.h) and meets the others by MPI.
/// After a failure the ranks' flight records are in `flight_folder`. Operations that others keep
/// waiting are told on standard error. Throws ConfigError for
/// variables that contradict each other or MPI, and what dist::mpi_group throws.
Ranks join_ranks(const std::filesystem::path& flight_folder);

/// Sets how long an operation between the ranks may take: the config's parallel.timeout_seconds.
void set_time_limit(const Ranks& ranks, double seconds);

/// Sets the number of threads that a rank computes with: what the config says, else the rank's part
/// of the cores that the process may use. Says so on standard error where several ranks share them.
void share_cores(const Ranks& ranks, int wanted_threads);

}  // namespace lockstep::launcher
