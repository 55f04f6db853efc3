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

/// The operations of one call, which share a Work.
struct Batch {
  std::shared_ptr<WorkState> work;
  size_t remaining = 0;
};

/// An operation of a group in progress on this rank. Used by the communication thread only.
struct OperationRun {
  using Clock = std::chrono::steady_clock;

  explicit OperationRun(Transport& transport) : run(transport) {}

  std::shared_ptr<const GroupMembers> group;
  Operation operation;
  Signature signature;
  uint64_t record = 0;  ///< its entry in the flight recorder
  std::shared_ptr<Batch> batch;
  TimeLimits limits;
  Clock::time_point begun;
  Clock::time_point next_question;
  Clock::duration between_questions{0};
  Clock::time_point next_notice;
  bool is_noticed = false;  ///< whether a delay was reported
  Schedule schedule;
  ScheduleRun run;
  bool started = false;
  std::map<int, Answer> answers;           ///< by rank of the group
  std::map<int, Clock::time_point> asked;  ///< ranks with an unanswered question, and since when

  Clock::time_point deadline() const { return begun + limits.whole; }
  /// When the first awaited rank exceeds its limit for answering a question.
  Clock::time_point silence_ends() const;
  /// When timeouts, questions or notices next have to be checked.
  Clock::time_point next_look() const;
  /// Bit mask of the group's ranks from which messages are missing or to which some are not sent.
  uint64_t awaited() const { return run.awaited() | run.unsent(); }
  /// These, and the ranks that they wait for by their answers, and so on: where ranks of a host
  /// pass messages on, the one that holds this rank up may be some ranks away.
  uint64_t concerned() const;
};

/// Returns the signature that ranks compare to detect different calls. The sender and the receiver
/// of a message have the same one.
Signature signature_of(const GroupMembers& group, const NumberedOperation& numbered);
/// Returns for example "all_reduce #17 of 1,024 float32, sum in group world".
std::string to_string(const Signature& signature, const GroupMembers& group);

/// Returns the tag of lane 0; those of the other lanes follow. Below 2^30.
uint64_t first_tag(const GroupMembers& group, const Operation& operation,
                   const Signature& signature);

/// Whether `later` must not begin before `earlier` has ended, so that messages with one tag between
/// two ranks keep their order.
bool must_follow(const OperationRun& later, const OperationRun& earlier);

/// Describes, from the answers of the other ranks, what a timed-out operation waits for.
std::string describe_wait(const OperationRun& run);

/// Whether an awaited rank has not answered for half a second.
bool awaits_silent(const OperationRun& run, OperationRun::Clock::time_point now);
/// Whether this rank reports the delay: the lowest rank that has called the operation does.
bool reports_delay(const OperationRun& run, OperationRun::Clock::time_point now);
/// Returns a line for the log about a slow operation: which ranks have not called it, or that the
/// transfer is slow.
std::string describe_delay(const OperationRun& run, OperationRun::Clock::time_point now);
/// Returns a line for the log that a delayed operation has ended.
std::string describe_end(const OperationRun& run, OperationRun::Clock::time_point now);

}  // namespace lockstep::dist
