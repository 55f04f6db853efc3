#include "core/base/service_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "core/base/blocked_signals.h"
#include "core/base/check.h"
#include "core/base/control_groups.h"

namespace lockstep {

namespace {

std::string soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return fmt::format("{}", limit.rlim_cur);
}

/// The lowest pids.max of the process's control groups.
std::string group_limit() {
  std::string lowest = "unlimited";
  for (const auto& group : control_groups("/", "pids")) {
    std::ifstream file(group / "pids.max");
    int64_t limit = 0;
    if (!(file >> limit)) continue;  // "max"
    if (lowest == "unlimited" || limit < std::stoll(lowest)) lowest = fmt::format("{}", limit);
  }
  return lowest;
}

}  // namespace

void refuse_thread(const char* name, int error) {
  throw OutOfMemoryError(fmt::format(
      "[threads] the thread {} cannot start: {}. Limits that may be the reason: processes of "
      "the user (ulimit -u) {}, of the control group (pids.max) {}, address space in bytes (ulimit "
      "-v) {}, data in bytes (ulimit -d) {}. Raise them, or use fewer threads, streams or ranks.",
      name, std::generic_category().message(error), soft_limit(RLIMIT_NPROC), group_limit(),
      soft_limit(RLIMIT_AS), soft_limit(RLIMIT_DATA)));
}

void ServiceThread::start(const char* name, std::function<void()> body) {
  const BlockedSignals signals;
  thread_ = start_thread(name, [name, body = std::move(body)] {
    (void)pthread_setname_np(pthread_self(), name);
    body();
  });
  process_ = getpid();
}

bool ServiceThread::left_behind() const { return started() && getpid() != process_; }

void ServiceThread::join() noexcept {
  if (!started()) return;
  if (!left_behind()) {
    thread_.join();
  } else {
    // In a forked child the thread does not exist, and can be neither joined nor detached. Leaked
    // on purpose.
    (void)new std::thread(std::move(thread_));
  }
}

}  // namespace lockstep
