#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep {

/// Whether the process has begun to end: main() has returned, or a thread has called exit().
///
/// Other threads compute on until the process is gone, so what they use must outlive every static
/// destructor: operators, kernels and backends stay registered, plug-ins stay loaded, and objects
/// that all threads share are never destroyed. Code that would undo such a registration asks this
/// first. Thread-safe.
///
/// True from the first destructor that runs on the thread of main(). When another thread calls
/// exit(), true from the first static destructor of objects that were made before the last
/// `note_exit`. A program whose main() ends with pthread_exit() counts as ending.
bool process_exits() noexcept;

/// Makes an exit() on another thread than main()'s known before objects are destroyed that were
/// made until now. Called by each thread's first parallel loop and by load_library. The first 64
/// calls of a process count. Thread-safe.
void note_exit() noexcept;

/// Keeps threads out of a library whose static objects are destroyed when the process ends.
///
/// Each use of the library is between `enter` and `leave`; where `enter` returns false, the caller
/// does without the library. `close` lets nobody in any more and waits for those inside. Call it
/// from a function that was given to std::atexit after the library made its static objects: it then
/// runs before they are destroyed. Thread-safe; entering touches no memory that other threads
/// write, up to 32 threads. One static object for each library.
class ExitGate {
 public:
  constexpr ExitGate() = default;

  bool enter() noexcept;
  void leave() noexcept;
  /// Waits until nobody is inside, at most 10 s: a thread may be stopped there.
  void close() noexcept;
  /// For a child made by fork(): the threads that were inside do not exist there.
  void reset_after_fork() noexcept;

  /// One use. Converts to false where the library must not be used.
  class Use {
   public:
    explicit Use(ExitGate& gate) noexcept : gate_(gate), entered_(gate.enter()) {}
    ~Use() {
      if (entered_) gate_.leave();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const noexcept { return entered_; }

   private:
    ExitGate& gate_;
    bool entered_;
  };

 private:
  static constexpr size_t kStripes = 32;
  struct alignas(64) Stripe {
    std::atomic<int32_t> inside = 0;
  };
  Stripe& own() noexcept;

  std::array<Stripe, kStripes> stripes_{};
  std::atomic<bool> closed_ = false;
};

}  // namespace lockstep
