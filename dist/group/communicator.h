#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/collectives/operation.h"
#include "dist/flight/flight_recorder.h"
#include "dist/rendezvous/job_control.h"
#include "dist/transport/transport.h"

namespace lockstep::dist {

struct WorkState;

/// Which ranks of a job form a group, as their communicators must agree on.
struct GroupMembers {
  uint64_t id = 0;     ///< equal on all members, and on no others of the job
  uint32_t index = 0;  ///< less than kMostGroups; no two groups of one rank have the same
  std::string name;
  std::vector<int> ranks;  ///< of the job, by rank of the group
  int rank = 0;            ///< this one's, within the group
};
inline constexpr uint32_t kMostGroups = 128;

/// An operation of a group with its number.
struct NumberedOperation {
  Operation operation;
  uint64_t sequence = 0;
};

/// How long an operation may take.
struct TimeLimits {
  /// From the call to its end.
  std::chrono::milliseconds whole{0};
  /// Within that: how long a rank that it waits for may leave a question unanswered. Ranks answer
  /// whatever their other threads do, so one that is silent is stopped, or cut off.
  std::chrono::milliseconds silence{0};
};

/// What connects a rank to the others.
struct Wire {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<JobControl> control;
  /// What both need; goes after them.
  std::shared_ptr<void> base;
};

/// The communication of one rank: a thread that owns the transport and carries out the operations
/// of all the rank's groups, side by side, each by its schedule.
///
/// An operation that does not end is looked into: after a fifth of a second its rank asks those it
/// waits for what they are doing. A rank that came to the same place with another operation makes
/// the job fail with MismatchError; what the others answer is what a TimeoutError tells, and before
/// it a delay's notice. The first failure of the job, here or elsewhere, fails every pending and
/// later operation.
///
/// Thread-safe.
class Communicator {
 public:
  struct Options {
    /// Where a failure leaves this rank's flight record; nowhere when empty.
    std::filesystem::path flight_folder;
    /// Told, on the communication thread, a line for people when an operation has taken a second
    /// (a 600th of its time, where that is longer and all answer): who has not come to it, or that
    /// the data are slow; and when such an operation ended. At most every 10 s, and by one of the
    /// ranks that wait. Must return soon, and not throw.
    std::function<void(const std::string& line)> on_delay = {};
    /// How long `connect` may take, where that is limited.
    std::optional<std::chrono::milliseconds> start_limit = {};
  };
  /// `connect` is called, and the transport used and destroyed, on the communication thread. Throws
  /// what it throws, and TimeoutError where it does not return in time: its thread is then left
  /// behind.
  Communicator(std::function<Wire()> connect, Options options);
  /// Waits for what is pending, which its time-outs end at the latest. The rank has left the job
  /// then.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;

  /// The next number for GroupMembers::index; the ranks agree on it.
  uint32_t next_group_index() const noexcept;
  void set_next_group_index(uint32_t index) noexcept;

  /// Remembers that the rank has come to these operations; they run when `begin` is called.
  std::vector<uint64_t> note(const GroupMembers& group,
                             const std::vector<NumberedOperation>& operations);
  /// Carries out operations together and ends `work` with the last of them. Throws the job's
  /// failure once there is one.
  void begin(std::shared_ptr<const GroupMembers> group, std::vector<NumberedOperation> operations,
             std::vector<uint64_t> records, const TimeLimits& limits,
             std::shared_ptr<WorkState> work);

  /// Makes the job fail: PeerLostError with `reason` on the other ranks.
  void abort(const std::string& reason) noexcept;
  /// The job's failure, as this rank knows it; null while all is well.
  std::exception_ptr failure() const;

  FlightRecorder& recorder() const;
  /// Bytes of tensors that have left this rank for others, by operations that have ended.
  uint64_t bytes_sent() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< the thread's, too
};

}  // namespace lockstep::dist
