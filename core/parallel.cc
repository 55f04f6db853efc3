#include "core/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#ifdef LOCKSTEP_SERIAL
// The thread sanitizer cannot see through the OpenMP runtime's own synchronisation.
static int omp_in_parallel() { return 0; }
static int omp_get_thread_num() { return 0; }
static int omp_get_num_threads() { return 1; }
// Libraries bring the runtime along even where Lockstep does not use it.
extern "C" {
int omp_get_max_threads() __attribute__((weak));
void omp_set_num_threads(int threads) __attribute__((weak));
}
#else
#include <omp.h>
#endif
#include <sched.h>

namespace lockstep {

namespace {

int allowed_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

thread_local int t_threads = 0;  // 0: not set yet

}  // namespace

int num_threads() {
  if (t_threads == 0) t_threads = allowed_cores();
  return t_threads;
}

void set_num_threads(int threads) { t_threads = std::max(1, threads); }

void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  FunctionRef<void(int64_t, int64_t)> body) {
  if (begin >= end) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t parts = std::min<int64_t>(num_threads(), (end - begin - 1) / grain + 1);
#ifdef LOCKSTEP_SERIAL
  constexpr bool kSerial = true;
#else
  constexpr bool kSerial = false;
#endif
  if (kSerial || parts <= 1 || omp_in_parallel() != 0) {
    body(begin, end);
    return;
  }
  std::exception_ptr first;
  std::mutex mutex;
  const int64_t length = std::max(grain, (end - begin - 1) / parts + 1);
#pragma omp parallel num_threads(static_cast <int>(parts))
  {
    // The runtime may give fewer threads than asked for; each then takes several parts.
    for (int64_t part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) {
      if (part * length >= end - begin) break;
      const int64_t from = begin + part * length;
      const int64_t to = end - from > length ? from + length : end;
      try {
        body(from, to);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    }
  }
  if (first) std::rethrow_exception(first);
}

LibraryOnOneThread::LibraryOnOneThread() {
#ifdef LOCKSTEP_SERIAL
  if (omp_set_num_threads == nullptr) return;
#endif
  before_ = omp_get_max_threads();
  omp_set_num_threads(1);
}

LibraryOnOneThread::~LibraryOnOneThread() {
  if (before_ != 0) omp_set_num_threads(before_);
}

}  // namespace lockstep
