// The communication thread of a communicator.

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/check.h"
#include "dist/collectives/short_slices.h"
#include "dist/group/communicator_state.h"

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

}  // namespace

void Communicator::State::main(const std::function<Connections()>& connect) {
  try {
    Connections connections = connect();
    transport = std::move(connections.transport);
    control = std::move(connections.control);
    base = std::move(connections.base);
    start = std::move(connections.start);
    meet = std::move(connections.meet);
    hosts = std::move(connections.hosts);
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
  common_end.begin();
  meet_others();
  control->leave();
  control->listen({});
  {
    const MutexLock guard(lock);
    sleeper = nullptr;
  }
  transport.reset();
  common_end.finish();
}

void Communicator::State::meet_others() {
  const std::function<void()> wait = std::exchange(meet, nullptr);
  {
    const MutexLock guard(lock);
    if (!wait || failure || reported_failure) return;
  }
  try {
    wait();
  } catch (const std::exception&) {
    // The job has failed: the others end as well.
  }
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
    run.schedule = plan(run.operation, group.rank, group.layout, cut);
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
  const uint64_t concerned = run.concerned();
  for (size_t rank = 0; rank < run.group->ranks.size() && rank < 64; ++rank) {
    if ((concerned >> rank & 1) != 0) {
      ask(run, static_cast<int>(rank), now);
    } else {
      run.asked.erase(static_cast<int>(rank));
    }
  }
}

void Communicator::State::ask(OperationRun& run, int rank, Clock::time_point now) {
  control->post(run.group->ranks[static_cast<size_t>(rank)], encode(Question{run.signature}));
  run.asked.try_emplace(rank, now);
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
    // Ranks that this one waits for, of which nothing is known yet, are asked at once.
    for (uint64_t left = run->concerned(); left != 0; left &= left - 1) {
      const int other = std::countr_zero(left);
      if (run->answers.contains(other) || run->asked.contains(other)) continue;
      ask(*run, other, Clock::now());
    }
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
void Communicator::State::write_record(const std::string& folder,
                                       const std::exception_ptr& error) const {
  if (folder.empty() || is_stop(error)) return;
  try {
    recorder->write(folder, words_of(error));
  } catch (const Error&) {
    // An error of writing the record must not hide the failure.
  }
}

void Communicator::State::fail_all(std::exception_ptr error) {
  std::string folder;
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
