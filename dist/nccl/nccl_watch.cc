#include "dist/nccl/nccl_watch.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/device/rank_waits.h"
#include "dist/group/failure.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// Time between two polls: grows while nothing happens, to less if a thread waits for the end of an
// operation. A poll takes a core from the threads that queue work.
constexpr microseconds kFirstPause{50};
constexpr microseconds kLongestPauseOfThreads{1000};
constexpr microseconds kLongestPause{10000};
constexpr milliseconds kIdlePause{100};
/// How long fail_job waits to be told which failure of the job was the first.
constexpr milliseconds kFailureComes{1000};

std::exception_ptr group_destroyed() {
  return std::make_exception_ptr(DistError("[nccl] the group has been destroyed."));
}

}  // namespace

std::exception_ptr fail_job(Communicator& communicator, const DistError& error) {
  communicator.abort(failure_text(error));
  // Another rank may have failed first: then its reason is the job's.
  const Clock::time_point limit = Clock::now() + kFailureComes;
  while (Clock::now() < limit) {
    if (std::exception_ptr failure = communicator.failure()) return failure;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return exception_of({communicator.rank(), failure_text(error)}, communicator.rank());
}

NcclWatch::NcclWatch(std::shared_ptr<Communicator> communicator, Hooks hooks,
                     std::shared_ptr<NcclPulse> pulse)
    : communicator_(std::move(communicator)), hooks_(std::move(hooks)), pulse_(std::move(pulse)) {
  thread_.start("nccl watch", [this] { run(); });
}

NcclWatch::~NcclWatch() { stop(); }

void NcclWatch::add(NcclQueued queued) {
  {
    const MutexLock guard(lock_);
    if (!stopped_) {
      added_.push_back(std::move(queued));
      idle_ = false;
      woken_ = true;
      changed_.notify_all();
      return;
    }
  }
  queued.work->finish(group_destroyed());
}

void NcclWatch::wake() {
  const MutexLock guard(lock_);
  idle_ = false;
  woken_ = true;
  changed_.notify_all();
}

bool NcclWatch::drain() {
  UniqueLock lock(lock_);
  changed_.wait(lock, [&]() LS_REQUIRES(lock_) { return idle_ || failure_ || stopping_; });
  return !failure_;
}

void NcclWatch::stop() noexcept {
  {
    const MutexLock guard(lock_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.left_behind()) return;
  thread_.join();
  const std::exception_ptr ended = group_destroyed();
  for (Entry& entry : entries_) end(entry, ended);
  entries_.clear();
  std::vector<NcclQueued> added;
  {
    const MutexLock guard(lock_);
    added.swap(added_);
    stopped_ = true;
  }
  for (NcclQueued& queued : added) queued.work->finish(ended);
}

void NcclWatch::run() {
  microseconds pause = kFirstPause;
  const NcclPulse::Beating beating(*pulse_);
  for (;;) {
    pulse_->beat();
    const bool moved = round();
    const bool waits = hooks_.waits();
    const bool threads_wait = waits || std::ranges::any_of(entries_, [](const Entry& entry) {
                                return entry.queued.waited_for;
                              });
    UniqueLock lock(lock_);
    if (stopping_) return;
    idle_ = entries_.empty() && added_.empty() && !waits && !woken_;
    if (idle_ || failure_) changed_.notify_all();  // for `drain`
    pause = moved ? kFirstPause
                  : std::min(2 * pause, threads_wait ? kLongestPauseOfThreads : kLongestPause);
    const microseconds limit = idle_ ? microseconds(kIdlePause) : pause;
    changed_.wait_for(lock, limit, [&]() LS_REQUIRES(lock_) { return woken_ || stopping_; });
    woken_ = false;
  }
}

/// Polls everything once; returns whether there was progress.
bool NcclWatch::round() {
  std::exception_ptr failure;
  bool moved = false;
  {
    const MutexLock guard(lock_);
    for (NcclQueued& queued : added_) entries_.push_back({std::move(queued), false, {}});
    moved = !added_.empty();
    added_.clear();
    failure = failure_;
  }
  if (!failure) {
    try {
      // Finish what is complete first: the failed rank may have done its part of it.
      for (Entry& entry : entries_) moved |= look_after(entry);
      std::erase_if(entries_, [](const Entry& entry) { return entry.queued.work == nullptr; });
      if (std::exception_ptr job = communicator_->failure()) std::rethrow_exception(job);
      moved |= hooks_.advance();
    } catch (const DistError& error) {
      failure = fail_job(*communicator_, error);
    } catch (const std::exception& error) {
      failure = fail_job(*communicator_, BackendError(error.what()));
    }
    if (failure) take_failure(failure);
  }
  if (failure) {
    for (Entry& entry : entries_) end(entry, failure);
    entries_.clear();
  }
  return moved;
}

bool NcclWatch::look_after(Entry& entry) {
  const NcclQueued& queued = entry.queued;
  const Clock::time_point now = Clock::now();
  if (!entry.started && queued.begins.query()) {
    entry.started = true;
    entry.since = now;
    for (const uint64_t record : queued.records) communicator_->recorder().started(record);
  }
  if (queued.ends.query()) {
    end(entry, nullptr);
    return true;
  }
  LS_CHECK(!entry.started || now < entry.since + queued.timeout, TimeoutError,
           "[{}] {} did not end within {} s: not all ranks have come to it, or their data does "
           "not arrive. `lockstep trace` shows what each rank did. Its time is set with the "
           "group's timeout.",
           queued.op, queued.what, std::chrono::duration<double>(queued.timeout).count());
  // Until then the device waits for other ranks, and does not hang itself.
  if (entry.started) note_wait_for_ranks(queued.ends.stream().device);
  return false;
}

/// Finishes an entry's work and clears it.
void NcclWatch::end(Entry& entry, const std::exception_ptr& error) {
  if (entry.queued.work == nullptr) return;
  for (const uint64_t record : entry.queued.records) {
    communicator_->recorder().ended(record, error != nullptr);
  }
  std::exchange(entry.queued.work, nullptr)->finish(error);
}

void NcclWatch::take_failure(const std::exception_ptr& error) {
  for (NcclQueued& queued : hooks_.fail(error)) entries_.push_back({std::move(queued), false, {}});
  const MutexLock guard(lock_);
  failure_ = error;
  changed_.notify_all();
}

}  // namespace lockstep::dist
