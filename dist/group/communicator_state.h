#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "dist/group/common_end.h"
#include "dist/group/communicator.h"
#include "dist/group/failure.h"
#include "dist/group/operation_run.h"
#include "dist/group/work_state.h"

namespace lockstep::dist {

/// What the callers of a communicator and its thread share, and what the thread does (`main`).
struct Communicator::State {
  using Clock = OperationRun::Clock;

  /// Operations that a caller has begun.
  struct Submission {
    std::shared_ptr<const GroupMembers> group;
    std::vector<NumberedOperation> operations;
    std::vector<uint64_t> records;
    TimeLimits limits;
    std::shared_ptr<WorkState> work;
  };
  /// A message of another rank.
  struct Note {
    int from;  ///< rank of the job
    std::string text;
  };

  explicit State(Options wanted)
      : options(std::move(wanted)), flight_folder(options.flight_folder) {}

  // Used by any thread.
  const Options options;
  std::optional<FlightRecorder> recorder;  ///< from when the rank is connected, as `control`
  std::shared_ptr<void> base;
  std::string start;
  std::unique_ptr<JobControl> control;
  std::function<void()> meet;
  std::vector<int> hosts;  ///< by rank; empty: all on one
  std::atomic<uint32_t> next_group_index{1};
  std::atomic<uint64_t> bytes_sent{0};
  std::promise<void> connected;
  CommonEnd common_end;
  std::thread thread;
  Mutex lock;
  std::vector<Submission> submitted LS_GUARDED_BY(lock);
  std::vector<Note> notes LS_GUARDED_BY(lock);
  /// Failure reported by `control` or `abort`.
  std::optional<Failure> reported_failure LS_GUARDED_BY(lock);
  std::exception_ptr failure LS_GUARDED_BY(lock);
  std::string flight_folder LS_GUARDED_BY(lock);
  bool stopping LS_GUARDED_BY(lock) = false;
  /// `transport` while it exists, for its `wake`, which any thread may call.
  Transport* sleeper LS_GUARDED_BY(lock) = nullptr;
  std::atomic<bool> news{false};  ///< whether any of these changed

  // Used by the communication thread only.
  std::unique_ptr<Transport> transport;
  std::vector<std::unique_ptr<OperationRun>> runs;  ///< in the order begun
  std::vector<std::unique_ptr<OperationRun>> spare;
  /// Error of a broken connection, and when to report it unless the peer's own reason comes first.
  std::optional<std::pair<std::string, Clock::time_point>> lost;
  Clock::time_point next_notice = Clock::time_point::min();  ///< earliest time of the next report

  /// Wakes the communication thread if it still runs.
  void tell() LS_REQUIRES(lock) {
    news.store(true, std::memory_order_release);
    if (sleeper != nullptr) sleeper->wake();
  }

  void main(const std::function<Connections()>& connect);
  void loop();
  void meet_others();
  bool is_over();
  bool step();
  void take_news();
  void take_failure();
  void admit(Submission submission);
  void start_those_that_may();
  bool may_start(size_t index) const;
  bool advance_all();
  void end(size_t index, std::exception_ptr error);
  void look_after(Clock::time_point now);
  void ask(OperationRun& run, Clock::time_point now);
  void ask(OperationRun& run, int rank, Clock::time_point now);
  void notice(OperationRun& run, Clock::time_point now);
  void answer(int from, const Question& question);
  void disagree(int from, const Signature& theirs, const Signature& mine, const std::string& group);
  void note_answer(int from, const Answer& answer);
  Clock::time_point next_look() const;
  void fail_here(const DistError& error);
  void fail_all(std::exception_ptr error);
  void write_record(const std::string& folder, const std::exception_ptr& error) const;
};

}  // namespace lockstep::dist
