#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "dist/collectives/schedule_run.h"
#include "dist/group/communicator.h"
#include "dist/group/peer_note.h"

namespace lockstep::dist {

/// The operations of one call, which end together.
struct Batch {
  std::shared_ptr<WorkState> work;
  size_t remaining = 0;
};

/// An operation of a group under way on this rank; of the communication thread alone.
struct OperationRun {
  using Clock = std::chrono::steady_clock;

  explicit OperationRun(Transport& transport) : run(transport) {}

  std::shared_ptr<const GroupMembers> group;
  Operation operation;
  Signature signature;
  uint64_t record = 0;  ///< of the flight recorder
  std::shared_ptr<Batch> batch;
  TimeLimits limits;
  Clock::time_point begun;
  Clock::time_point next_question;
  Clock::duration between_questions{0};
  Clock::time_point next_notice;
  bool is_noticed = false;  ///< that it takes long was told
  Schedule schedule;
  ScheduleRun run;
  bool started = false;
  std::map<int, Answer> answers;           ///< by rank of the group
  std::map<int, Clock::time_point> asked;  ///< when, of those that have not answered since

  Clock::time_point deadline() const { return begun + limits.whole; }
  /// When a rank that is still waited for has left a question unanswered for too long.
  Clock::time_point silence_ends() const;
  /// When something may have to be done about it.
  Clock::time_point next_look() const;
  /// Ranks of the group that have not sent, or taken, what they must; by bit.
  uint64_t awaited() const { return run.awaited() | run.unsent(); }
};

/// What ranks compare to see that they do the same. The two sides of a message have one signature.
Signature signature_of(const GroupMembers& group, const NumberedOperation& numbered);
/// "all_reduce #17 of 1,024 float32, sum in group world".
std::string to_string(const Signature& signature, const GroupMembers& group);

/// The tag of lane 0; the other lanes' follow. Below 2^30.
uint64_t first_tag(const GroupMembers& group, const Operation& operation,
                   const Signature& signature);

/// Whether `later` must not begin before `earlier` has ended: messages of one tag between two ranks
/// keep their order.
bool must_follow(const OperationRun& later, const OperationRun& earlier);

/// What an operation that took too long waits for, as far as the others told.
std::string describe_wait(const OperationRun& run);

/// Whether one of those that it waits for has not answered for half a second.
bool awaits_silent(const OperationRun& run, OperationRun::Clock::time_point now);
/// Whether it is this rank that tells of a delay: the lowest of those that have come.
bool tells_delay(const OperationRun& run, OperationRun::Clock::time_point now);
/// A line for people about an operation that takes long: who has not come, or that the data are
/// slow.
std::string describe_delay(const OperationRun& run, OperationRun::Clock::time_point now);
/// A line that says that it has ended after all.
std::string describe_end(const OperationRun& run, OperationRun::Clock::time_point now);

}  // namespace lockstep::dist
