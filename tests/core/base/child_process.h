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

/// ThreadSanitizer does not allow threads in a child made by fork().
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Whether fork() is safe while other threads allocate: the allocators of AddressSanitizer and
/// ThreadSanitizer stay locked in the child if a thread held their lock at the fork.
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
    if (!std::getline(file, stat)) continue;  // the thread has ended meanwhile
    const size_t name_end = stat.rfind(')');
    if (name_end + 2 >= stat.size() || stat[name_end + 2] != 'S') return false;
  }
  return true;
}

/// fork() for tests whose other threads are idle or about to be. Where a sanitizer's allocator
/// could stay locked in the child, waits at most one second until all other threads sleep.
inline pid_t fork_when_idle() {
  using namespace std::chrono_literals;
  const auto patience = std::chrono::steady_clock::now() + 1s;
  while (!kForksAmongBusyThreads && !other_threads_sleep() &&
         std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(1ms);
  }
  return fork();
}

/// Returns the exit status of a child that runs `body` and then calls _exit: 0 if `body` returns
/// true, else 1. An alarm kills the child after 20 s.
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
