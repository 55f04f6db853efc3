#include "dist/transport/bell.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <system_error>

#include "core/base/check.h"

namespace lockstep::dist {

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(BellState) == sizeof(uint32_t),
              "the system call takes a bare word");

namespace {

timespec to_timespec(std::chrono::nanoseconds limit) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t ns = std::max<int64_t>(limit.count(), 0);
  timespec time{};
  time.tv_sec = ns / kSecond;
  time.tv_nsec = ns % kSecond;
  return time;
}

}  // namespace

void BellState::wake(int fd) noexcept {
  const uint32_t before = state_.exchange(kAwake, std::memory_order_seq_cst);
  if (before == kAsleep) {
    // Not FUTEX_PRIVATE: the word may be shared between processes.
    (void)syscall(SYS_futex, &state_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  } else if (before == kPolling) {
    // A failure because the pipe is full is fine: it wakes the thread already.
    constexpr char kByte = 0;
    while (write(fd, &kByte, 1) < 0 && errno == EINTR) {
    }
  }
}

Bell::Bell() {
  int ends[2] = {-1, -1};
  const bool made = pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0;
  const int error = errno;
  LS_CHECK(made, BackendError, "[bell] no pipe: {}. Raise `ulimit -n`.",
           std::system_category().message(error));
  read_ = OwnedFd(ends[0]);
  write_ = OwnedFd(ends[1]);
}

void Bell::prepare(bool for_files) noexcept {
  state_->state_.store(for_files ? BellState::kPolling : BellState::kAsleep,
                       std::memory_order_seq_cst);
}

void Bell::stay_awake() noexcept {
  state_->state_.store(BellState::kAwake, std::memory_order_relaxed);
}

void Bell::sleep(std::chrono::nanoseconds limit) noexcept {
  const timespec time = to_timespec(limit);
  // All errors are allowed early returns.
  (void)syscall(SYS_futex, &state_->state_, FUTEX_WAIT, BellState::kAsleep, &time, nullptr, 0);
  stay_awake();
}

void Bell::sleep(std::chrono::nanoseconds limit, std::span<pollfd> files) noexcept {
  files[0] = {read_.get(), POLLIN, 0};
  const timespec time = to_timespec(limit);
  if (ppoll(files.data(), files.size(), &time, nullptr) <= 0) {
    for (pollfd& file : files) file.revents = 0;
  }
  stay_awake();
  std::array<char, 64> bytes{};
  while (files[0].revents != 0 && read(read_.get(), bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace lockstep::dist
