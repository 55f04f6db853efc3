#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::dist {

/// Returns the value of an environment variable, or null if it is not set, like `std::getenv`.
using Lookup = std::function<const char*(const char* name)>;

/// Rank and job of a process as given by its launcher. Values that were not given are empty.
struct RankEnvironment {
  int rank = 0;
  int size = 1;
  /// False: nobody has given this process a rank; it gets one when the ranks meet.
  bool numbered = true;
  std::optional<int> local_rank;  ///< rank among those of its node
  std::optional<int> local_size;
  std::optional<int> node_rank;
  std::optional<int> node_count;
  /// Origin of rank and size: "the command line", "Lockstep's variables", "torchrun's variables",
  /// "Open MPI's variables", "PMI's variables", "Slurm's variables", "Kubernetes' variables" or
  /// "nobody".
  std::string source = "nobody";
  /// Whether a launcher of MPI programs started the ranks, so that MPI can connect them.
  bool under_mpi = false;
  bool in_kubernetes = false;           ///< whether the process runs in a pod
  std::string master_address;           ///< address of rank 0's host
  std::optional<uint16_t> master_port;  ///< port for a server of rank 0
  std::string job_id;     ///< unique among concurrent jobs as far as the launcher ensures that
  int restart_count = 0;  ///< how often the job was restarted

  friend bool operator==(const RankEnvironment&, const RankEnvironment&) = default;
};

/// Values given on the command line.
struct GivenRank {
  std::optional<int> rank;
  std::optional<int> size;
  std::optional<int> local_rank;
  std::optional<int> local_size;
  std::string master_address;
  std::optional<int> master_port;
};

/// Determines rank and job from these sources, in this order:
///
/// 1. `given`. If it has rank and size, 2 to 7 are ignored. If it has the size alone, that must
///    agree with the set that gives a rank; if none does, the rank is left open (`numbered`).
/// 2. LOCKSTEP_RANK, LOCKSTEP_WORLD_SIZE; _LOCAL_RANK, _LOCAL_WORLD_SIZE, _NODE_RANK, _NODE_COUNT
/// 3. torchrun: RANK, WORLD_SIZE; LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE
/// 4. Open MPI: OMPI_COMM_WORLD_RANK, _SIZE; _LOCAL_RANK, _LOCAL_SIZE
/// 5. MPICH and Intel MPI: PMI_RANK, PMI_SIZE; MPI_LOCALRANKID, MPI_LOCALNRANKS
/// 6. Slurm, in a step (SLURM_STEP_ID): SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS;
///    SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE, SLURM_NODEID, SLURM_STEP_NUM_NODES or SLURM_NNODES
/// 7. Kubernetes, in a pod of an indexed Job or of a JobSet: JOB_COMPLETION_INDEX, with the size
///    that `given`, LOCKSTEP_WORLD_SIZE or WORLD_SIZE has and no rank.
/// 8. else: a single rank.
///
/// Rank and size come from the first set that has both; each other value from the first set that
/// has it. All sets present must agree in rank, size, local rank and local size. A later set is
/// ignored if its size is smaller and it has one task on each node: those tasks are the launchers
/// of the ranks, as under `srun torchrun`, or mpirun in a Slurm allocation.
///
/// master: LOCKSTEP_MASTER_ADDR and _PORT, MASTER_ADDR and _PORT, the first node of
/// SLURM_STEP_NODELIST. If torchrun's agent uses MASTER_PORT for its own store
/// (TORCHELASTIC_USE_AGENT_STORE), the next port. job_id: LOCKSTEP_JOB_ID, TORCHELASTIC_RUN_ID,
/// PMIX_NAMESPACE, SLURM_JOB_ID with its step. restart_count: LOCKSTEP_RESTART_COUNT,
/// TORCHELASTIC_RESTART_COUNT, SLURM_RESTART_COUNT.
///
/// under_mpi: set 4 or 5 is there and is not ignored, or set 6 is, and PMIX_RANK.
///
/// in_kubernetes: KUBERNETES_SERVICE_HOST is set.
///
/// Variables that are set but empty count as not set. Throws ConfigError, naming the variables and
/// their values, for incomplete sets, malformed numbers, a rank that is not less than the size, and
/// sets that do not agree.
RankEnvironment rank_environment(const Lookup& lookup, const GivenRank& given = {});

/// Returns for example "rank 3 of 8 (Open MPI's variables), local rank 1 of 4".
std::string to_string(const RankEnvironment& environment);

}  // namespace lockstep::dist
