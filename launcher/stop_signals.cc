#include "launcher/stop_signals.h"

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "launcher/exit_code.h"

namespace lockstep::launcher {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

std::atomic<int> stop_signal{0};
/// What a first signal says; null: nothing.
std::atomic<const char*> waits_for{nullptr};
/// The message with which a first signal ends the process; null: it does not.
std::atomic<const char*> last_words{nullptr};
/// The eventfd of a thread that ends the process; -1: the handler does.
std::atomic<int> alarm_fd{-1};
/// What that thread says before.
std::atomic<const char*> told_words{nullptr};
static_assert(std::atomic<int>::is_always_lock_free &&
                  std::atomic<const char*>::is_always_lock_free,
              "a signal handler may use them");

const char* name_of(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "SIGHUP";
  }
}

/// Writes the texts to standard error in one call, as far as that is possible.
void say(std::array<const char*, 4> texts) {
  std::array<iovec, texts.size()> parts{};
  for (size_t i = 0; i < texts.size(); ++i) {
    parts[i] = {const_cast<char*>(texts[i]), std::strlen(texts[i])};
  }
  (void)!::writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size()));
}

void say_last(int signal, const char* words) {
  if (*words != '\0') say({name_of(signal), ": ", words, "\n"});
}

/// Ends the process, or has the thread end it, which takes a moment.
void end_now(int signal, const char* words) {
  if (const int fd = alarm_fd; fd >= 0) {
    told_words = words;
    const uint64_t one = 1;
    if (::write(fd, &one, sizeof(one)) == sizeof(one)) return;
  }
  say_last(signal, words);
  ::_exit(kStopped);
}

extern "C" void ask_for_stop(int signal) {
  const int error = errno;
  int none = 0;
  if (stop_signal.compare_exchange_strong(none, signal)) {
    if (const char* words = last_words.load()) {
      end_now(signal, words);
    } else if (const char* what = waits_for.load()) {
      say({name_of(signal), ": stopping, with everything saved, after ", what,
           "; a second signal ends the run at once\n"});
    }
    errno = error;
    return;
  }
  // Takes the default action, so that the parent sees which signal ended the process.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  ::raise(signal);
}

void check(int result) {
  LS_CHECK(result == 0, Error, "[signals] the system refused a handler for stop signals: {}.",
           std::strerror(errno));
}

/// Size of the alternate stack: 16 KiB for the handler, and the signal frame, whose size depends on
/// the processor since it holds all vector and tile registers.
size_t stack_bytes() {
  constexpr size_t kHandler = 16384;
  return kHandler + static_cast<size_t>(std::max(0L, ::sysconf(_SC_SIGSTKSZ)));
}

}  // namespace

StopSignals::StopSignals() : stack_(std::make_unique<std::byte[]>(stack_bytes())) {
  stop_signal = 0;
  waits_for = nullptr;
  last_words = nullptr;
  told_words = nullptr;
  stack_t stack{};
  stack.ss_sp = stack_.get();
  stack.ss_size = stack_bytes();
  check(::sigaltstack(&stack, &stack_before_));
  struct sigaction action {};
  action.sa_handler = ask_for_stop;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // restarts interrupted system calls
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    check(::sigaction(kSignals[i], &action, &before_[i]));
    // nohup ignores it on purpose.
    if (kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) {
      check(::sigaction(SIGHUP, &before_[i], nullptr));
    }
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  ::sigaltstack(&stack_before_, nullptr);
  alarm_fd = -1;
  if (thread_.started()) {
    const uint64_t one = 1;
    (void)!::write(alarm_.get(), &one, sizeof(one));
    thread_.join();
  }
}

void StopSignals::before_end(std::function<void()> farewell) {
  farewell_ = std::move(farewell);
  alarm_ = OwnedFd(::eventfd(0, EFD_CLOEXEC));
  LS_CHECK(alarm_, Error, "[signals] the system refused an eventfd: {}.", std::strerror(errno));
  thread_.start("ls-stop", [this] { end_when_told(); });
  alarm_fd = alarm_.get();
}

void StopSignals::end_when_told() {
  uint64_t count = 0;
  while (::read(alarm_.get(), &count, sizeof(count)) < 0 && errno == EINTR) {
  }
  const char* const words = told_words;
  if (words == nullptr) return;  // the object ends
  say_last(received(), words);
  farewell_();
  ::_exit(kStopped);
}

int StopSignals::received() const { return stop_signal; }

void StopSignals::wait_for(const char* what) {
  waits_for = what;
  last_words = nullptr;
}

void StopSignals::end_at_once(const std::string& message) {
  // Leaked: a handler may be reading the message before. A run calls this a few times.
  const char* const words = ::strdup(message.c_str());
  if (words == nullptr) throw std::bad_alloc();
  last_words = words;
  if (const int signal = received(); signal != 0) {
    end_now(signal, words);
    for (;;) ::pause();  // until the thread ends the process
  }
}

}  // namespace lockstep::launcher
