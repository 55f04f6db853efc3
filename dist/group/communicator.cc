#include "dist/group/communicator.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/blocked_signals.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "dist/collectives/short_slices.h"
#include "dist/group/common_end.h"
#include "dist/group/failure.h"
#include "dist/group/operation_run.h"
#include "dist/group/work_state.h"

namespace lockstep::dist {
namespace {

using Clock = OperationRun::Clock;
using std::chrono::milliseconds;

/// Scheduler slice of the communication thread. If ranks compute on all cores, the thread would
/// otherwise wait for the end of the slices of compute threads (1.4 ms at each wake-up).
constexpr std::chrono::microseconds kSlice{200};
constexpr Clock::duration kLongestSleep = std::chrono::seconds(1);
/// Time until the awaited ranks of an operation are first asked how far they are, and the longest
/// interval between later questions.
constexpr Clock::duration kFirstQuestion = milliseconds(200);
constexpr Clock::duration kBetweenQuestions = std::chrono::seconds(5);
/// Time until a delay is reported, and the least interval between two reports.
constexpr Clock::duration kFirstNotice = std::chrono::seconds(1);
constexpr Clock::duration kBetweenNotices = std::chrono::seconds(10);
/// An operation with a long timeout is expected to take long: while all ranks answer, the first
/// 1/kNoticeShare of its timeout is not reported as a delay.
constexpr int kNoticeShare = 600;
/// How long a broken connection waits for the failure message that the other rank may still send.
constexpr Clock::duration kReasonComes = milliseconds(500);

struct Submission {
  std::shared_ptr<const GroupMembers> group;
  std::vector<NumberedOperation> operations;
  std::vector<uint64_t> records;
  TimeLimits limits;
  std::shared_ptr<WorkState> work;
};
struct Note {
  int from;  ///< rank of the job
  std::string text;
};

}  // namespace

struct Communicator::State {
  explicit State(Options wanted)
      : options(std::move(wanted)), flight_folder(options.flight_folder) {}

  // Used by any thread.
  const Options options;
  std::optional<FlightRecorder> recorder;  ///< from when the rank is connected, as `control`
  std::shared_ptr<void> base;
  std::string start;
  std::unique_ptr<JobControl> control;
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
  std::filesystem::path flight_folder LS_GUARDED_BY(lock);
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
  void notice(OperationRun& run, Clock::time_point now);
  void answer(int from, const Question& question);
  void disagree(int from, const Signature& theirs, const Signature& mine, const std::string& group);
  void note_answer(int from, const Answer& answer);
  Clock::time_point next_look() const;
  void fail_here(const DistError& error);
  void fail_all(std::exception_ptr error);
  void write_record(const std::filesystem::path& folder, const std::exception_ptr& error) const;
};

Communicator::Communicator(std::function<Connections()> connect, Options options)
    : state_(std::make_shared<State>(std::move(options))) {
  State& state = *state_;
  std::future<void> connected = state.connected.get_future();
  {
    const BlockedSignals signals;
    state.thread =
        start_thread("of the communicator",
                     [own = state_, connect = std::move(connect)] { own->main(connect); });
  }
  const std::optional<milliseconds> limit = state.options.start_limit;
  if (limit && connected.wait_for(*limit) != std::future_status::ready) {
    {
      const MutexLock guard(state.lock);
      state.stopping = true;
    }
    state.thread.detach();  // the call that it waits in cannot be interrupted
    throw TimeoutError(fmt::format(
        "[dist] this rank is not connected with the others after {} s: expected all ranks to come. "
        "One may not have been started, or have ended early: see what they say.",
        std::chrono::duration<double>(*limit).count()));
  }
  try {
    connected.get();
  } catch (...) {
    state.thread.join();
    throw;
  }
  state.control->listen({
      .on_message =
          [&state](int from, std::string text) {
            const MutexLock guard(state.lock);
            state.notes.push_back({from, std::move(text)});
            state.tell();
          },
      .on_failure =
          [&state](const Failure& failure) {
            const MutexLock guard(state.lock);
            if (!state.reported_failure) state.reported_failure = failure;
            state.tell();
          },
  });
}

Communicator::~Communicator() {
  {
    const MutexLock guard(state_->lock);
    state_->stopping = true;
    state_->tell();
  }
  state_->common_end.join(state_->thread, state_->options.on_delay);
}

int Communicator::rank() const { return state_->control->rank(); }
int Communicator::size() const { return state_->control->size(); }
FlightRecorder& Communicator::recorder() const { return *state_->recorder; }
uint64_t Communicator::bytes_sent() const noexcept { return state_->bytes_sent; }
const std::string& Communicator::start_id() const { return state_->start; }
void Communicator::set_end_limit(milliseconds limit) noexcept {
  state_->common_end.set_limit(limit);
}

void Communicator::set_flight_folder(std::filesystem::path folder) {
  std::exception_ptr missed;
  {
    const MutexLock guard(state_->lock);
    if (state_->flight_folder.empty()) missed = state_->failure;
    state_->flight_folder = folder;
  }
  if (missed) state_->write_record(folder, missed);
}

uint32_t Communicator::next_group_index() const noexcept { return state_->next_group_index; }
void Communicator::set_next_group_index(uint32_t index) noexcept {
  state_->next_group_index = index;
}

std::vector<uint64_t> Communicator::record(const GroupMembers& group,
                                           const std::vector<NumberedOperation>& operations) {
  std::vector<uint64_t> records;
  records.reserve(operations.size());
  for (const NumberedOperation& each : operations) {
    records.push_back(state_->recorder->queued(
        signature_of(each.operation, group.id, each.sequence), group.name,
        static_cast<uint32_t>(operations.size()), each.operation.user_tag));
  }
  return records;
}

void Communicator::begin(std::shared_ptr<const GroupMembers> group,
                         std::vector<NumberedOperation> operations, std::vector<uint64_t> records,
                         const TimeLimits& limits, std::shared_ptr<WorkState> work) {
  const MutexLock guard(state_->lock);
  if (state_->failure) std::rethrow_exception(state_->failure);
  LS_CHECK(!state_->stopping, DistError, "[{}] the group has been destroyed.", group->name);
  state_->submitted.push_back(
      {std::move(group), std::move(operations), std::move(records), limits, std::move(work)});
  state_->tell();
}

void Communicator::compare(const Signature& signature, std::span<const int> ranks) noexcept {
  try {
    const std::string text = encode(Question{signature});
    for (const int rank : ranks) state_->control->post(rank, text);
  } catch (const std::exception&) {
    // Out of memory: the next comparison may have more.
  }
}

void Communicator::abort(const std::string& reason) noexcept {
  state_->control->fail(reason);
  try {
    // Do not wait for the failure to come back by `control`: this rank may be about to exit.
    Failure own{rank(), reason};
    const MutexLock guard(state_->lock);
    if (!state_->reported_failure) state_->reported_failure = std::move(own);
    state_->tell();
  } catch (const std::exception&) {
    // Out of memory: `control` will report the failure.
  }
}

void Communicator::stop() noexcept {
  try {
    state_->control->fail(failure_text(StoppedError("another rank was asked to stop.")));
    // Answered after the failure, which comes first on the same connection.
    state_->control->leave();
  } catch (const std::exception&) {
    // Out of memory: the other ranks notice the end of this one.
  }
}

std::exception_ptr Communicator::failure() const {
  const MutexLock guard(state_->lock);
  return state_->failure;
}

// --- the communication thread ----------------------------------------------------------------

void Communicator::State::main(const std::function<Connections()>& connect) {
  try {
    Connections connections = connect();
    transport = std::move(connections.transport);
    control = std::move(connections.control);
    base = std::move(connections.base);
    start = std::move(connections.start);
    recorder.emplace(control->rank(), control->size(), FlightRecorder::kCapacity, start);
  } catch (...) {
    connected.set_exception(std::current_exception());
    return;
  }
  {
    const MutexLock guard(lock);
    sleeper = transport.get();
  }
  connected.set_value();
  try {
    loop();
  } catch (const std::exception& error) {
    fail_here(
        BackendError(fmt::format("[dist] the communication thread failed: {}", error.what())));
  }
  runs.clear();
  spare.clear();
  control->leave();
  control->listen({});
  {
    const MutexLock guard(lock);
    sleeper = nullptr;
  }
  common_end.begin();
  transport.reset();
  common_end.finish();
}

void Communicator::State::loop() {
  (void)ask_for_short_slices(kSlice);
  for (;;) {
    while (step()) {
    }
    if (is_over()) {
      // The end of a job that has failed must not wait for the other ranks.
      take_failure();
      return;
    }
    // The transport decides how long to poll before it sleeps.
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(next_look() - Clock::now());
    if (left.count() > 0) transport->sleep(left);
  }
}

bool Communicator::State::is_over() {
  const MutexLock guard(lock);
  return stopping && runs.empty() && submitted.empty();
}

/// Makes progress without blocking; returns whether there was any.
bool Communicator::State::step() {
  const bool had_news = news.exchange(false, std::memory_order_acq_rel);
  if (had_news) take_news();
  bool moved = transport->progress();
  moved |= advance_all();
  // Complete what has arrived first: the failed rank may have done its part of it.
  if (!moved) take_failure();
  look_after(Clock::now());
  return moved || had_news;
}

void Communicator::State::take_news() {
  std::vector<Submission> new_work;
  std::vector<Note> new_notes;
  {
    const MutexLock guard(lock);
    new_work.swap(submitted);
    new_notes.swap(notes);
  }
  for (Submission& submission : new_work) admit(std::move(submission));
  for (const Note& note : new_notes) {
    if (const auto question = decode_question(note.text)) {
      answer(note.from, *question);
    } else if (const auto told_where = decode_answer(note.text)) {
      note_answer(note.from, *told_where);
    }
  }
}

void Communicator::State::take_failure() {
  std::optional<Failure> bad;
  {
    const MutexLock guard(lock);
    if (!failure) bad = reported_failure;
  }
  if (bad) fail_all(exception_of(*bad, control->rank()));
}

void Communicator::State::admit(Submission submission) {
  std::exception_ptr known;
  {
    const MutexLock guard(lock);
    known = failure;
  }
  if (known) return submission.work->finish(known);
  const auto batch = std::make_shared<Batch>(Batch{submission.work, submission.operations.size()});
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < submission.operations.size(); ++i) {
    std::unique_ptr<OperationRun> run;
    if (spare.empty()) {
      run = std::make_unique<OperationRun>(*transport);
    } else {
      run = std::move(spare.back());
      spare.pop_back();
    }
    run->group = submission.group;
    run->signature = signature_of(*submission.group, submission.operations[i]);
    run->operation = std::move(submission.operations[i].operation);
    run->record = submission.records[i];
    run->batch = batch;
    run->limits = submission.limits;
    run->begun = now;
    run->next_question = now + kFirstQuestion;
    run->between_questions = kFirstQuestion;
    run->next_notice = now + kFirstNotice;
    run->is_noticed = false;
    run->started = false;
    run->answers.clear();
    run->asked.clear();
    runs.push_back(std::move(run));
  }
  start_those_that_may();
}

bool Communicator::State::may_start(size_t index) const {
  for (size_t i = 0; i < index; ++i) {
    if (must_follow(*runs[index], *runs[i])) return false;
  }
  return true;
}

void Communicator::State::start_those_that_may() {
  for (size_t i = 0; i < runs.size(); ++i) {
    OperationRun& run = *runs[i];
    if (run.started || !may_start(i)) continue;
    const GroupMembers& group = *run.group;
    Cut cut;
    cut.segment_bytes = transport->segment_bytes();
    cut.window = transport->window();
    run.schedule = plan(run.operation, group.rank, static_cast<int>(group.ranks.size()), cut);
    run.run.start(run.schedule, {.input = run.operation.input,
                                 .output = run.operation.output,
                                 .ranks = group.ranks,
                                 .tag = first_tag(group, run.operation, run.signature)});
    run.started = true;
    recorder->started(run.record);
  }
}

bool Communicator::State::advance_all() {
  bool moved = false;
  for (size_t i = 0; i < runs.size();) {
    OperationRun& run = *runs[i];
    if (run.started && run.run.state() == ScheduleRun::State::kRunning) moved |= run.run.advance();
    if (run.run.state() == ScheduleRun::State::kDone) {
      end(i, nullptr);
      moved = true;
      continue;
    }
    if (run.run.state() == ScheduleRun::State::kFailed && !lost) {
      const ScheduleRun::Fault& fault = run.run.fault();
      const std::string text = fmt::format("[{}] {}: {}", name(run.operation.kind),
                                           to_string(run.signature, *run.group), fault.text);
      if (fault.is_mismatch) {
        fail_here(MismatchError(text));
        return true;
      }
      // The rank that ended may have reported its reason through `control`.
      lost = {text, Clock::now() + kReasonComes};
    }
    ++i;
  }
  return moved;
}

void Communicator::State::end(size_t index, std::exception_ptr error) {
  std::unique_ptr<OperationRun> run = std::move(runs[index]);
  runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(index));
  run->run.cancel();
  recorder->ended(run->record, error != nullptr);
  if (!error) bytes_sent += dist::bytes_sent(run->schedule);
  if (run->is_noticed && !error) options.on_delay(describe_end(*run, Clock::now()));
  if (--run->batch->remaining == 0 || error) {
    if (run->batch->work) std::exchange(run->batch->work, nullptr)->finish(error);
  }
  run->batch.reset();
  run->group.reset();
  spare.push_back(std::move(run));
  if (!error) start_those_that_may();
}

/// Checks timeouts, asks awaited ranks and reports delays.
void Communicator::State::look_after(Clock::time_point now) {
  if (lost && now >= lost->second) {
    const std::string text = std::move(lost->first);
    lost.reset();
    return fail_here(PeerLostError(text));
  }
  for (const auto& run : runs) {
    if (now < run->next_look()) continue;
    if (run->started) recorder->awaits(run->record, run->awaited());
    const bool is_late = now >= run->deadline();
    if (is_late || now >= run->silence_ends()) {
      const milliseconds limit = is_late ? run->limits.whole : run->limits.silence;
      return fail_here(TimeoutError(
          fmt::format("[{}] {} did not {} within {} s{}. Its time is set with the group's timeout.",
                      name(run->operation.kind), to_string(run->signature, *run->group),
                      is_late ? "end" : "get an answer",
                      std::chrono::duration<double>(limit).count(), describe_wait(*run))));
    }
    if (now >= run->next_notice) notice(*run, now);
    if (now >= run->next_question) ask(*run, now);
  }
}

/// Reports that an operation takes long, unless another rank does.
void Communicator::State::notice(OperationRun& run, Clock::time_point now) {
  run.next_notice = std::max(now + kFirstNotice, next_notice);
  const bool is_long = now - run.begun >= run.limits.whole / kNoticeShare;
  if (!options.on_delay || !run.started || now < next_notice) return;
  if ((!is_long && !awaits_silent(run, now)) || !reports_delay(run, now)) return;
  next_notice = now + kBetweenNotices;
  run.is_noticed = true;
  options.on_delay(describe_delay(run, now));
}

void Communicator::State::ask(OperationRun& run, Clock::time_point now) {
  run.next_question = now + run.between_questions;
  run.between_questions = std::min(2 * run.between_questions, kBetweenQuestions);
  if (!run.started) return;
  const uint64_t awaited = run.awaited();
  const std::string text = encode(Question{run.signature});
  for (size_t rank = 0; rank < run.group->ranks.size() && rank < 64; ++rank) {
    if ((awaited >> rank & 1) == 0) {
      run.asked.erase(static_cast<int>(rank));
      continue;
    }
    control->post(run.group->ranks[rank], text);
    run.asked.try_emplace(static_cast<int>(rank), now);
  }
}

void Communicator::State::answer(int from, const Question& question) {
  const Signature& theirs = question.signature;
  Answer answer{.group = theirs.group, .sequence = theirs.sequence};
  for (const auto& run : runs) {
    const Signature& mine = run->signature;
    if (mine.group != theirs.group || mine.sequence != theirs.sequence) continue;
    if (mine != theirs) return disagree(from, theirs, mine, run->group->name);
    answer.where = Answer::Where::kThere;
    if (run->started) answer.awaited = run->awaited();
  }
  if (const auto newest = recorder->newest(theirs.group)) answer.called = *newest + 1;
  // The operation has ended, or its stream has not reached it yet.
  const auto record = recorder->find(theirs.group, theirs.sequence);
  if (record && answer.where == Answer::Where::kNotYet) {
    if (record->signature != theirs) {
      return disagree(from, theirs, record->signature, record->group_name);
    }
    const bool is_done = record->state == FlightRecord::State::kDone;
    answer.where = is_done ? Answer::Where::kDone : Answer::Where::kThere;
  }
  control->post(from, encode(answer));
}

void Communicator::State::disagree(int from, const Signature& theirs, const Signature& mine,
                                   const std::string& group) {
  fail_here(MismatchError(fmt::format(
      "[{}] ranks do not agree on operation #{} of group {}: rank {} called {}, rank {} called {}. "
      "All ranks must call the same operations in the same order.",
      name(mine.kind), theirs.sequence, group, from, to_string(theirs), control->rank(),
      to_string(mine))));
}

void Communicator::State::note_answer(int from, const Answer& answer) {
  for (const auto& run : runs) {
    if (run->signature.group != answer.group || run->signature.sequence != answer.sequence)
      continue;
    const auto member = std::ranges::find(run->group->ranks, from);
    if (member == run->group->ranks.end()) continue;
    const auto rank = static_cast<int>(member - run->group->ranks.begin());
    run->answers[rank] = answer;
    run->asked.erase(rank);
  }
}

Clock::time_point Communicator::State::next_look() const {
  Clock::time_point next = Clock::now() + kLongestSleep;
  if (lost) next = std::min(next, lost->second);
  for (const auto& run : runs) next = std::min(next, run->next_look());
  return next;
}

void Communicator::State::fail_here(const DistError& error) {
  const std::string text = failure_text(error);
  control->fail(text);
  // Another rank may have failed first: then its reason is the job's.
  const Failure failure = control->failure().value_or(Failure{control->rank(), text});
  fail_all(exception_of(failure, control->rank()));
}

/// Writes the flight record unless there is no folder or the job was stopped on request.
void Communicator::State::write_record(const std::filesystem::path& folder,
                                       const std::exception_ptr& error) const {
  if (folder.empty() || is_stop(error)) return;
  try {
    recorder->write(folder, words_of(error));
  } catch (const Error&) {
    // An error of writing the record must not hide the failure.
  }
}

void Communicator::State::fail_all(std::exception_ptr error) {
  std::filesystem::path folder;
  {
    const MutexLock guard(lock);
    if (failure) return;
    failure = error;
    folder = flight_folder;
  }
  lost.reset();
  for (const auto& run : runs) {
    if (run->started) recorder->awaits(run->record, run->awaited());
  }
  transport->abandon();
  write_record(folder, error);
  while (!runs.empty()) end(runs.size() - 1, error);
}

}  // namespace lockstep::dist
