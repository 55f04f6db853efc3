#include "launcher/launch/signal_queue.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::launcher {

SignalQueue::SignalQueue() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    struct sigaction action {};
    // nohup, and shells for background jobs, ignore signals on purpose.
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&taken, signal);
  }
  LS_CHECK(::sigprocmask(SIG_BLOCK, &taken, &before_) == 0, Error,
           "[launch] signals cannot be blocked: {}.", std::strerror(errno));
  fd_ = OwnedFd(::signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (fd_) return;
  const int error = errno;
  (void)::sigprocmask(SIG_SETMASK, &before_, nullptr);
  throw Error(fmt::format("[launch] no descriptor for signals: {}.", std::strerror(error)));
}

SignalQueue::~SignalQueue() { (void)::sigprocmask(SIG_SETMASK, &before_, nullptr); }

int SignalQueue::take() {
  signalfd_siginfo info{};
  const ssize_t got = ::read(fd_.get(), &info, sizeof(info));
  return got == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

int SignalQueue::take_within(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + time;
  for (;;) {
    if (const int signal = take(); signal != 0) return signal;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return 0;
    pollfd readable{fd_.get(), POLLIN, 0};
    (void)::poll(&readable, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
  }
}

const char* signal_name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGHUP:
      return "SIGHUP";
    default:
      return ::strsignal(signal);
  }
}

}  // namespace lockstep::launcher
