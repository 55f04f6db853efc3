#pragma once

#include <cstddef>

namespace lockstep::emulation {

/// Code that runs on a stack of its own until it switches to another; never on two threads at once,
/// and from one `start` to the next always on one. The stack below the guard page stays mapped.
class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{128} << 10;

  /// The code that a thread runs anyway, on the thread's stack: what fibers are switched to from.
  Fiber() = default;
  /// `entry` never returns.
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next switch to it begins with the entry, whatever it was doing.
  void start();
  /// Goes on with `next`; returns when something switches back to this one, which is running.
  void switch_to(Fiber& next);
  /// What a fiber does first when it is switched to for the first time since `start`.
  static void arrived();

 private:
  void* top_of_stack_ = nullptr;  ///< where it left off
  char* stack_ = nullptr;         ///< null for a thread's own
  void (*entry_)() = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* thread_ = nullptr;
#endif
};

}  // namespace lockstep::emulation
