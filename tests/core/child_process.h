#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// What a child process ends with that runs `body` and then ends by _exit: 0 where `body` returns
/// true. After 20 s it is killed.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

}  // namespace lockstep
