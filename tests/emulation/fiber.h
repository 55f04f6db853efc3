#pragma once

#include <cstddef>

namespace lockstep::emulation {

/// Code that runs on its own stack until it switches to another fiber. Never runs on two threads at
/// once; stays on one thread from one `start` to the next. The stack below the guard page stays
/// mapped.
class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{128} << 10;

  /// The current code of a thread, on the thread's stack: fibers are entered from it.
  Fiber() = default;
  /// `entry` never returns.
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next switch to this fiber begin at the entry, discarding its current state.
  void start();
  /// Switches to `next`. Returns when a fiber switches back to this one, which must be the running
  /// one.
  void switch_to(Fiber& next);
  /// Says that the running fiber, this one, has no more to do: it switches to another one next, and
  /// is started before it is entered again.
  void leaves_for_good();
  /// Says that the calling thread, on its own stack, is the one that enters fibers from now on. To
  /// be called before fibers are made or started.
  static void enter_from_here();
  /// Must be called first by a fiber that is entered for the first time since `start`.
  static void arrived();

 private:
  void* top_of_stack_ = nullptr;  ///< saved stack pointer
  char* stack_ = nullptr;         ///< null for a thread's own stack
  void (*entry_)() = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
#endif
#if defined(LOCKSTEP_THREAD_SANITIZER)
  void* thread_ = nullptr;  ///< ThreadSanitizer's
  bool is_entered_ = false;
#endif
};

}  // namespace lockstep::emulation
