#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/collectives/host_layout.h"
#include "dist/collectives/operation.h"
#include "dist/flight/flight_recorder.h"
#include "dist/rendezvous/job_control.h"
#include "dist/transport/transport.h"

namespace lockstep::dist {

struct WorkState;

/// The ranks of a job that form a group; all members have the same data except `rank`.
struct GroupMembers {
  uint64_t id = 0;     ///< equal on all members and unique in the job
  uint32_t index = 0;  ///< less than kMostGroups, unique among the groups of a rank
  std::string name;
  std::vector<int> ranks;                       ///< ranks of the job, by rank of the group
  int rank = 0;                                 ///< this rank within the group
  HostLayout layout = HostLayout::one_host(1);  ///< hosts of `ranks`
};
/// Number of groups a job can make in its life: a message tag has 7 bits for the index.
inline constexpr uint32_t kMostGroups = 128;

/// An operation with its sequence number in its group.
struct NumberedOperation {
  Operation operation;
  uint64_t sequence = 0;
};

/// How long an operation may take.
struct TimeLimits {
  /// Limit from the call to the end of the operation.
  std::chrono::milliseconds whole{0};
  /// Limit for an awaited rank to answer a question. The communication thread answers even while
  /// other threads of the rank are busy, so a silent rank is stopped or disconnected.
  std::chrono::milliseconds silence{0};
};

/// The connections of a rank to the others.
struct Connections {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<JobControl> control;
  /// Keeps alive what both depend on; destroyed after them.
  std::shared_ptr<void> base;
  /// Identifies this start of the job; equal on all its ranks.
  std::string start = {};
  /// Waits until all ranks of the job have come to their ends, called before `control` leaves; may
  /// throw DistError if the job fails meanwhile. Empty if the transport's destructor does so.
  std::function<void()> meet = {};
  /// By rank: the number of its host, alike on all ranks. Empty: all are on one.
  std::vector<int> hosts = {};
};

/// The communication of one rank: a thread that owns the transport and runs the operations of all
/// the rank's groups concurrently, each by its schedule.
///
/// If an operation has not ended after 0.2 s, its rank asks the ranks it waits for how far they
/// are. A rank that called a different operation with the same sequence number makes the job fail
/// with MismatchError; other answers go into the delay notice and the TimeoutError. The first
/// failure of the job, on any rank, fails every pending and later operation.
///
/// Thread-safe.
class Communicator {
 public:
  struct Options {
    /// Folder to which this rank's flight record is written after a failure; none if empty.
    /// set_flight_folder changes it.
    std::string flight_folder;
    /// Called on the communication thread with a line for the log if an operation takes longer than
    /// a second (or than 1/600 of its timeout, if that is longer and all ranks answer): which ranks
    /// have not called it, or that the transfer is slow; and again when that operation ends. Called
    /// at most every 10 s, on only one of the waiting ranks. Must return soon and not throw.
    std::function<void(const std::string& line)> on_delay = {};
    /// Timeout of `connect`, if any.
    std::optional<std::chrono::milliseconds> start_limit = {};
  };
  /// `connect` is called, and the transport used and destroyed, on the communication thread. Throws
  /// the errors of `connect`, and TimeoutError if it does not return in time; the thread is then
  /// detached.
  Communicator(std::function<Connections()> connect, Options options);
  /// Waits for pending operations, which end at their timeouts at the latest, and leaves the job.
  /// Then waits for the other ranks to leave, as MPI_Finalize does, up to the end limit:
  /// after it `on_delay` gets a line, and the thread is left behind.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  /// Hosts of these ranks of the job.
  HostLayout layout_of(std::span<const int> ranks) const;

  /// Lowest unused GroupMembers::index of this rank; the members of a new group agree on one.
  uint32_t next_group_index() const noexcept;
  void set_next_group_index(uint32_t index) noexcept;

  /// Records in the flight recorder that this rank called the operations, which run from `begin`
  /// on. Returns their records.
  std::vector<uint64_t> record(const GroupMembers& group,
                               const std::vector<NumberedOperation>& operations);
  /// Runs the operations concurrently and finishes `work` with the last of them. Throws the job's
  /// failure if it has failed.
  void begin(std::shared_ptr<const GroupMembers> group, std::vector<NumberedOperation> operations,
             std::vector<uint64_t> records, const TimeLimits& limits,
             std::shared_ptr<WorkState> work);

  /// Asks `ranks` (of the job) whether they have called the same operation with that sequence
  /// number of its group. A rank that called a different one makes the job fail with MismatchError,
  /// naming both; one that has not called it yet, or does not remember it, does nothing. For
  /// operations that other libraries run and that are in the recorders of all ranks; returns at
  /// once.
  void compare(const Signature& signature, std::span<const int> ranks) noexcept;

  /// Makes the job fail, with PeerLostError and `reason` on the other ranks.
  void abort(const std::string& reason) noexcept;
  /// As `abort`, and leaves the job: returns once the other ranks have been told, so that this
  /// process may exit.
  void abort_and_leave(const std::string& reason) noexcept;
  /// Ends the job because this rank was asked to stop when there was nothing to save: operations of
  /// the other ranks fail with StoppedError (dist/group/failure.h), and no rank writes its flight
  /// record. Returns once the other ranks have been told, so that this process may exit.
  void stop() noexcept;
  /// The job's failure as far as this rank knows, or null.
  std::exception_ptr failure() const;

  FlightRecorder& recorder() const;
  /// Identifies this start of the job; equal on all its ranks.
  const std::string& start_id() const;
  /// How long the destructor waits for the other ranks' ends; 10 minutes unless set.
  void set_end_limit(std::chrono::milliseconds limit) noexcept;
  /// From now on this rank's flight record is written to `folder` after a failure; at once if there
  /// was one that found no folder.
  void set_flight_folder(std::string folder);
  /// Bytes of tensors that this rank has sent to others, in operations that have ended.
  uint64_t bytes_sent() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the thread
};

}  // namespace lockstep::dist
