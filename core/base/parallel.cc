#include "core/base/parallel.h"

#include <dlfcn.h>

#include <algorithm>

#include "core/base/process_exit.h"
#include "core/base/thread_pool.h"

namespace lockstep {

namespace {

thread_local int t_threads = 0;  // 0: not set yet

/// The OpenMP runtime that a dependency loaded, looked up by name, because Lockstep does not link
/// OpenMP itself.
struct OpenMp {
  int (*max_threads)();
  void (*set_num_threads)(int threads);
};

const OpenMp& openmp() {
  static const OpenMp kFound = {
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads")),
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))};
  return kFound;
}
// Initialized before main(), so that no fork can happen while another thread runs the initializer.
[[maybe_unused]] const OpenMp& found_early = openmp();

}  // namespace

int num_threads() {
  if (t_threads == 0) {
    set_num_threads(thread_pool::allowed_cores());
    note_exit();  // once for each thread that computes
  }
  return t_threads;
}

void set_num_threads(int threads) {
  t_threads = std::clamp(threads, 1, static_cast<int>(thread_pool::kMostParts));
}

void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  FunctionRef<void(int64_t, int64_t)> body) {
  if (begin >= end) return;
  if (thread_pool::in_part()) return body(begin, end);
  const LibraryOnOneThread one_thread;
  grain = std::max<int64_t>(grain, 1);
  const int64_t parts = std::min<int64_t>(num_threads(), (end - begin - 1) / grain + 1);
  if (parts <= 1) return body(begin, end);
  const int64_t length = std::max(grain, (end - begin - 1) / parts + 1);
  thread_pool::run((end - begin - 1) / length + 1, [&](int64_t part) {
    const int64_t from = begin + part * length;
    body(from, end - from > length ? from + length : end);
  });
}

LibraryOnOneThread::LibraryOnOneThread() {
  if (openmp().max_threads == nullptr || openmp().set_num_threads == nullptr) return;
  before_ = openmp().max_threads();
  if (before_ != 1) openmp().set_num_threads(1);
}

LibraryOnOneThread::~LibraryOnOneThread() {
  if (before_ > 1) openmp().set_num_threads(before_);
}

}  // namespace lockstep
