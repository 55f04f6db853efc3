#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "dist/group/communicator.h"
#include "dist/group/members.h"
#include "dist/group/process_group.h"
#include "dist/rendezvous/rank_environment.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::launcher {

/// This process's rank in its job.
struct Ranks {
  dist::RankEnvironment environment;
  std::unique_ptr<dist::ProcessGroup> group;              ///< null for a single rank
  std::shared_ptr<dist::Communicator> communicator = {};  ///< the group's communicator
  std::optional<dist::Members::Start> start = {};         ///< of several that TCP connects

  bool leads() const { return environment.rank == 0; }
};

/// This process's rank, as its environment and the command line tell it. Throws ConfigError for
/// variables that contradict each other.
dist::RankEnvironment this_rank(const dist::GivenRank& given = {});

/// Whether such a rank is connected to the others by MPI: see join_ranks.
bool uses_mpi(const dist::RankEnvironment& environment);

/// Connects to the other ranks of the job; a single rank connects to nobody. Ranks that a launcher
/// of MPI programs has started are connected by MPI, if Lockstep was built with it; all others meet
/// at the address that their variables or the command line give
/// (dist/rendezvous/rendezvous.h), and are connected by TCP. LOCKSTEP_TRANSPORT, mpi or tcp, wins.
///
/// Operations that wait long for other ranks are reported on standard error; a rank whose host is
/// silent for `silence_seconds` is lost. Throws ConfigError for variables that contradict MPI, lack
/// the address or tell of fewer ranks on this host than there are, MismatchError for program
/// variables that differ between the ranks, and the errors of dist::mpi_group and dist::tcp_group.
/// With `elastic`, processes may join the ranks later where these have first met.
Ranks join_ranks(const dist::RankEnvironment& environment, double silence_seconds = 10,
                 bool elastic = false);
inline Ranks join_ranks() { return join_ranks(this_rank()); }

/// How a process finds the ranks of a job that TCP connects, to join them.
dist::Members::Start start_of(const dist::RankEnvironment& environment, double silence_seconds);

/// Lets the ranks find each other again after some are lost, or when others join. Collective. Null
/// for a single rank that has no address, and where MPI connects them. `shard_size`: consecutive
/// ranks that keep one model together.
std::unique_ptr<dist::Members> members_of(const Ranks& ranks, int shard_size);
/// The ranks that have met again; `before`: as this one was before.
Ranks met_again(dist::Members::Met met, const dist::RankEnvironment& before);

/// Calls `body`. What it throws is told to the other ranks in its own words before it is thrown
/// again: a group that is destroyed by an exception does not know them.
void tell_errors(const Ranks& ranks, const std::function<void()>& body);

/// If the config's device is "cuda", assigns each rank a GPU: its local rank modulo the number of
/// GPUs that its process sees. Then replaces the group by an NCCL group if every rank has its own
/// GPU and finds the library; otherwise keeps it, and rank 0 prints the reason to standard error.
/// Collective. Throws ConfigError for more ranks on a host than GPUs, unless
/// parallel.share_devices.
void assign_devices(Ranks& ranks, const config::RunConfig& config);

/// Ends this process if its GPU hangs without an error (device_silence_seconds), with the exit
/// status of a DeviceError, once the other ranks have been told. Threads that wait for the GPU
/// cannot be woken, so nothing is cleaned up, as if the process was killed.
class DeviceWatch {
 public:
  DeviceWatch();
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  /// Watches the config's device from now on, if it is a GPU. Call at most once.
  void start(const config::RunConfig& config);
  /// `ranks` are those of now on.
  void use(const Ranks& ranks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Sets the timeout of operations between the ranks, and of their common end: the config's
/// parallel.timeout_seconds.
void set_time_limit(const Ranks& ranks, double seconds);

/// Limits how long this rank waits for the others when it ends this group.
void limit_end(const Ranks& ranks, double seconds);

/// Sets the number of threads that a rank computes with: the config's, or the rank's share of the
/// cores that the process may use. Reports it on standard error if several ranks share the cores.
void set_rank_threads(const Ranks& ranks, int wanted_threads);

}  // namespace lockstep::launcher
