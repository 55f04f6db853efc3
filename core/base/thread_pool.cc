#include "core/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cfenv>
#include <exception>
#include <string>
#include <thread>
#include <type_traits>

#include "core/base/adaptive_wait.h"
#include "core/base/blocked_signals.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"

namespace lockstep::thread_pool {

namespace {

/// State of one call of `run`, on its caller's stack.
class Job {
 public:
  Job(int64_t parts, FunctionRef<void(int64_t)> body)
      : body_(body), parts_(parts), working_(static_cast<uint32_t>(helpers())) {
    for (int64_t word = 0; word < words(); ++word) {
      const int64_t left = parts - word * 64;
      untaken_[static_cast<size_t>(word)].store(
          left < 64 ? (uint64_t{1} << left) - 1 : ~uint64_t{0}, std::memory_order_relaxed);
    }
  }

  /// Number of workers that can take a part each.
  int64_t helpers() const { return parts_ - 1; }

  /// Runs `part`, then other parts until all are taken.
  void work(int64_t part) {
    if (take(part)) run(part);
    for (int64_t i = 0; i < words(); ++i) {
      const int64_t word = (part / 64 + i) % words();
      while (const uint64_t untaken = at(word).load(std::memory_order_relaxed)) {
        const int64_t other = word * 64 + std::countr_zero(untaken);
        if (take(other)) run(other);
      }
    }
  }

  /// Called by a worker that will take no more parts; the caller may then destroy the job.
  void leave() {
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == (kAsleep | 1)) wake_one(working_);
  }

  /// Called by the caller: waits for all workers except `absent` ones, which were never woken or
  /// were called off.
  void wait(int64_t absent, AdaptiveWait& wait) {
    const auto gone = static_cast<uint32_t>(absent);
    if (working_.fetch_sub(gone, std::memory_order_acq_rel) == gone) return;
    wait.until([&] { return (working_.load(std::memory_order_acquire) & ~kAsleep) == 0; },
               [&] {
                 const uint32_t before = working_.fetch_or(kAsleep, std::memory_order_acq_rel);
                 if ((before & ~kAsleep) != 0) sleep_while(working_, before | kAsleep);
               });
  }

  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  static constexpr uint32_t kAsleep = uint32_t{1} << 31;

  int64_t words() const { return (parts_ + 63) / 64; }
  std::atomic<uint64_t>& at(int64_t word) { return untaken_[static_cast<size_t>(word)]; }

  bool take(int64_t part) {
    const uint64_t bit = uint64_t{1} << (part % 64);
    return (at(part / 64).fetch_and(~bit, std::memory_order_relaxed) & bit) != 0;
  }

  void run(int64_t part) {
    try {
      body_(part);
    } catch (...) {
      if (!failed_.test_and_set(std::memory_order_relaxed)) first_ = std::current_exception();
    }
  }

  FunctionRef<void(int64_t)> body_;
  int64_t parts_;
  std::atomic<uint32_t> working_;  ///< workers still on the job; kAsleep: caller sleeps
  std::atomic_flag failed_;
  std::exception_ptr first_;
  std::array<std::atomic<uint64_t>, kMostParts / 64> untaken_;  ///< a bit for each part
};

thread_local bool t_in_part = false;

/// A thread and the slot in which callers place jobs for it. Aligned to a pair of cache lines,
/// because processors prefetch the neighbouring line.
class alignas(128) Worker {
 public:
  /// Starts the thread; returns false if the system cannot.
  bool start(int index);

  /// Gives the job to the thread if it has none, and wakes it.
  bool offer(Job* job) {
    Job* none = nullptr;
    if (job_.load(std::memory_order_relaxed) != nullptr ||
        !job_.compare_exchange_strong(none, job, std::memory_order_seq_cst)) {
      return false;
    }
    if (asleep_.load(std::memory_order_seq_cst) != 0 && asleep_.exchange(0) != 0) wake_one(asleep_);
    return true;
  }
  /// Withdraws an offered job if the thread has not yet taken it.
  bool call_off(Job* job) {
    Job* expected = job;
    return job_.load(std::memory_order_relaxed) == job &&
           job_.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed);
  }
  /// Ends and joins the thread unless it has a job.
  void stop() {
    if (offer(stop_mark())) (void)pthread_join(thread_, nullptr);
  }
  /// Resets to the state before `start`; for a forked child, where the thread does not exist.
  void forget() {
    job_ = nullptr;
    asleep_ = 0;
  }

 private:
  // Values of job_ that are not jobs.
  static Job* taken_mark() { return reinterpret_cast<Job*>(1); }
  static Job* stop_mark() { return reinterpret_cast<Job*>(2); }

  static void* main(void* worker);
  void work();

  std::atomic<Job*> job_ = nullptr;
  std::atomic<uint32_t> asleep_ = 0;
  int index_ = 0;
  pthread_t thread_{};
};

// Trivially destructible, since threads may still wait here when the process ends.
constinit std::array<Worker, kMostParts> g_workers;
constinit std::atomic<int> g_count = 0;  ///< workers started, from the first on
constinit std::atomic<int> g_most = kMostParts;
constinit Mutex g_mutex;  ///< held to change g_count or g_most
static_assert(std::is_trivially_destructible_v<Worker> && std::is_trivially_destructible_v<Mutex>);

Worker& worker(int index) { return g_workers[static_cast<size_t>(index)]; }

bool Worker::start(int index) {
  index_ = index;
  const BlockedSignals signals;
  return signals.blocked() && pthread_create(&thread_, nullptr, main, this) == 0;
}

void* Worker::main(void* worker) {
  auto* const self = static_cast<Worker*>(worker);
  (void)pthread_setname_np(pthread_self(), ("ls-worker-" + std::to_string(self->index_)).c_str());
  (void)std::fesetenv(FE_DFL_ENV);
  const LibraryOnOneThread one_thread;
  t_in_part = true;
  self->work();
  return nullptr;
}

void Worker::work() {
  AdaptiveWait wait;
  while (true) {
    wait.until([&] { return job_.load(std::memory_order_relaxed) != nullptr; },
               [&] {
                 // Either this thread sees the offer, or the caller sees asleep_ and wakes it.
                 asleep_.store(1, std::memory_order_seq_cst);
                 if (job_.load(std::memory_order_seq_cst) == nullptr) sleep_while(asleep_, 1);
                 asleep_.store(0, std::memory_order_relaxed);
               });
    Job* job = job_.load(std::memory_order_relaxed);
    if (job == stop_mark()) return;
    if (job == nullptr ||
        !job_.compare_exchange_strong(job, taken_mark(), std::memory_order_acquire)) {
      continue;  // the job was called off
    }
    job->work(1 + index_ % job->helpers());
    // Clear the slot before leave(), so that the caller's next call finds this worker free.
    job_.store(nullptr, std::memory_order_release);
    job->leave();
  }
}

/// Registers fork handlers: the child has only the calling thread, and no other thread may hold
/// g_mutex across the fork. Runs before main(), so that no fork can happen before the handlers are
/// registered.
bool prepare_for_fork() {
  static const bool prepared = pthread_atfork([]() LS_ACQUIRE(g_mutex) { g_mutex.lock(); },
                                              []() LS_RELEASE(g_mutex) { g_mutex.unlock(); },
                                              []() LS_RELEASE(g_mutex) {
                                                for (int i = 0; i < g_count; ++i) {
                                                  worker(i).forget();
                                                }
                                                g_count = 0;
                                                g_mutex.unlock();
                                              }) == 0;
  return prepared;
}
[[maybe_unused]] const bool prepared_for_fork = prepare_for_fork();

/// Whether worker `index` exists, starting it if there are fewer than `most`.
bool has_worker(int index, int most) {
  if (index < g_count.load(std::memory_order_acquire)) return true;
  if (index >= std::min(most, g_most.load(std::memory_order_relaxed))) return false;
  const MutexLock lock(g_mutex);
  if (index < g_count) return true;
  if (index >= g_most) return false;
  if (!prepare_for_fork() || !worker(index).start(index)) {
    g_most = index;  // do not try again in every call
    return false;
  }
  g_count.store(index + 1, std::memory_order_release);
  return true;
}

/// Joins the workers when the thread that runs main() ends the process. Thread-local objects are
/// destroyed before static ones, which the workers' thread-local objects may need until then.
struct JoinAtExit {
  ~JoinAtExit() {
    const MutexLock lock(g_mutex);
    g_most = 0;
    for (int i = 0; i < g_count; ++i) worker(i).stop();
  }
};
bool join_when_this_thread_ends() {
  thread_local const JoinAtExit join;
  return true;
}
[[maybe_unused]] const bool joins = getpid() == gettid() && join_when_this_thread_ends();

}  // namespace

int allowed_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

bool in_part() { return t_in_part; }

int workers() { return g_count.load(std::memory_order_acquire); }

void run(int64_t parts, FunctionRef<void(int64_t)> body) {
  // Not a static local: a fork while another thread initializes it would leave its guard locked.
  static constinit std::atomic<int> cores = 0;
  if (cores.load(std::memory_order_relaxed) == 0) cores = allowed_cores();
  const int most_for_cores = cores.load(std::memory_order_relaxed) - 1;
  thread_local AdaptiveWait wait;
  Job job(parts, body);
  const int most = std::max(static_cast<int>(job.helpers()), most_for_cores);
  int64_t absent = job.helpers();
  int asked = 0;
  for (; absent > 0 && has_worker(asked, most); ++asked) {
    if (worker(asked).offer(&job)) --absent;
  }
  t_in_part = true;
  job.work(0);
  t_in_part = false;
  for (int i = 0; i < asked; ++i) {
    if (worker(i).call_off(&job)) ++absent;
  }
  job.wait(absent, wait);
  job.rethrow();
}

}  // namespace lockstep::thread_pool
