#include "core/base/service_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "core/base/blocked_signals.h"
#include "core/base/check.h"

namespace lockstep {

void ServiceThread::start(const char* name, std::function<void()> body) {
  const BlockedSignals signals;
  try {
    thread_ = std::thread([name, body = std::move(body)] {
      (void)pthread_setname_np(pthread_self(), name);
      body();
    });
  } catch (const std::system_error& error) {
    throw BackendError(fmt::format("[dist] cannot start thread {}: {}.", name, error.what()));
  }
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
