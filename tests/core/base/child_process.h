#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace lockstep {

/// ThreadSanitizer refuses threads in a child made by fork().
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Whether a child may be made while other threads allocate: the allocators of AddressSanitizer and
/// ThreadSanitizer stay locked in it if they were just then.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kForksAmongBusyThreads = false;
#else
inline constexpr bool kForksAmongBusyThreads = true;
#endif

/// Whether all threads of this process but the calling one sleep.
inline bool other_threads_sleep() {
  const std::string self = std::to_string(gettid());
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == self) continue;
    std::ifstream file(thread.path() / "stat");
    std::string stat;
    if (!std::getline(file, stat)) continue;  // it has ended meanwhile
    const size_t name_end = stat.rfind(')');
    if (name_end + 2 >= stat.size() || stat[name_end + 2] != 'S') return false;
  }
  return true;
}

/// fork() for tests whose other threads have nothing to do, if perhaps not yet: where a busy
/// thread's allocator may stay locked in the child, waits (at most a second) until all sleep.
inline pid_t fork_when_idle() {
  using namespace std::chrono_literals;
  const auto patience = std::chrono::steady_clock::now() + 1s;
  while (!kForksAmongBusyThreads && !other_threads_sleep() &&
         std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(1ms);
  }
  return fork();
}

/// What a child process ends with that runs `body` and then ends by _exit: 0 where `body` returns
/// true. After 20 s it is killed.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork_when_idle();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

}  // namespace lockstep
