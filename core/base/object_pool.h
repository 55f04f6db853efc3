#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace lockstep {

/// Base that gives a class T its own `new` and `delete`: each thread keeps the memory of up to
/// kMost deleted objects for reuse, so that short-lived objects cost no heap call. An object may be
/// deleted on another thread than the one that made it. Only for T itself, not for classes derived
/// from it.
template <class T>
class Pooled {
 public:
  static void* operator new(size_t bytes) {
    Pool& pool = t_pool;
    if (pool.first == nullptr) return ::operator new(bytes);
    Idle* idle = pool.first;
    pool.first = idle->next;
    --pool.count;
    return idle;
  }
  static void operator delete(void* memory) noexcept {
    Pool& pool = t_pool;
    if (pool.count >= kMost || !pool.open()) return ::operator delete(memory);
    pool.first = ::new (memory) Idle{pool.first};
    ++pool.count;
  }

 private:
#ifdef __SANITIZE_ADDRESS__
  static constexpr size_t kMost = 0;  // otherwise ASan would miss uses after delete
#else
  static constexpr size_t kMost = 64;  // bounds the idle memory of each thread
#endif

  struct Idle {
    Idle* next;
  };
  /// Trivially destructible, because objects may be deleted by destructors that run after the
  /// thread's other thread-local objects are destroyed. `Emptier` frees the memory and closes the
  /// pool.
  struct Pool {
    Idle* first = nullptr;
    size_t count = 0;
    enum : uint8_t { kFresh, kOpen, kClosed } state = kFresh;

    bool open() {
      if (state == kFresh) [[unlikely]] {
        thread_local const Emptier emptier;
        state = kOpen;
      }
      return state == kOpen;
    }
  };
  struct Emptier {
    Emptier() {}
    ~Emptier() {
      Pool& pool = t_pool;
      while (pool.first != nullptr) {
        Idle* idle = pool.first;
        pool.first = idle->next;
        ::operator delete(idle);
      }
      pool.count = 0;
      pool.state = Pool::kClosed;
    }
  };
  static inline thread_local constinit Pool t_pool{};
};

}  // namespace lockstep
