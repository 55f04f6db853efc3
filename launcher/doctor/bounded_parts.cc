#include "launcher/doctor/bounded_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"

namespace lockstep::launcher {

namespace {

using Clock = std::chrono::steady_clock;
using train::Check;
using train::Health;

/// What the thread of the parts and the one that waits for it share; the former may outlive both.
struct Progress {
  Mutex mutex;
  CondVar changed;
  std::vector<Check> checks LS_GUARDED_BY(mutex);
  size_t begun LS_GUARDED_BY(mutex) = 0;  ///< number of parts
  size_t ended LS_GUARDED_BY(mutex) = 0;
};

std::vector<Check> checks_of(const Part& part) {
  try {
    return part.run();
  } catch (const std::exception& error) {
    return {{part.subject, Health::kFail, "could not be examined", error.what()}};
  }
}

void run_parts(const std::vector<Part>& parts, Clock::time_point end, Progress& progress) {
  for (const Part& part : parts) {
    {
      const MutexLock lock(progress.mutex);
      if (Clock::now() >= end) return;
      ++progress.begun;
    }
    std::vector<Check> found = checks_of(part);
    const MutexLock lock(progress.mutex);
    std::ranges::move(found, std::back_inserter(progress.checks));
    ++progress.ended;
    progress.changed.notify_all();
  }
}

}  // namespace

Examined examine(std::vector<Part> parts, std::chrono::milliseconds limit) {
  const auto progress = std::make_shared<Progress>();
  const auto shared = std::make_shared<const std::vector<Part>>(std::move(parts));
  const Clock::time_point end = Clock::now() + limit;
  std::thread thread =
      start_thread("doctor", [progress, shared, end] { run_parts(*shared, end, *progress); });
  Examined examined;
  size_t ended = 0;
  {
    UniqueLock<Mutex> lock(progress->mutex);
    const auto all = [&]()
                         LS_REQUIRES(progress->mutex) { return progress->ended == shared->size(); };
    (void)progress->changed.wait_until(lock, end, all);
    examined.checks = progress->checks;
    ended = progress->ended;
    examined.hangs = progress->begun > ended;
  }
  if (examined.hangs) {
    thread.detach();
  } else {
    thread.join();  // it begins nothing after the end
  }
  const double seconds = std::chrono::duration<double>(limit).count();
  for (size_t i = ended; i < shared->size(); ++i) {
    Check check{(*shared)[i].subject, Health::kWarn,
                fmt::format("not reached within {:g} s", seconds), "--time-limit gives more time."};
    if (examined.hangs && i == ended) {
      check.health = Health::kFail;
      check.found = fmt::format("no answer within the limit of {:g} s", seconds);
      check.advice = "It may hang: dmesg shows Xid errors of GPUs. " + check.advice;
    }
    examined.checks.push_back(std::move(check));
  }
  return examined;
}

}  // namespace lockstep::launcher
