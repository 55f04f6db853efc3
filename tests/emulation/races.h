#pragma once

#include <cstddef>

/// What ThreadSanitizer is told of a GPU's threads, so that it finds accesses of the same memory
/// that nothing orders: each GPU thread is one of its threads, and what orders them are barriers,
/// warp functions and atomics alone, not that the emulation runs one after the other. Blocks are
/// ordered by atomics alone. Without ThreadSanitizer all of this is nothing.
namespace lockstep::emulation::races {

#if defined(LOCKSTEP_THREAD_SANITIZER)

/// What came before `release` on one thread is ordered before what follows `acquire` of the same
/// address on another.
void release(const void* address);
void acquire(const void* address);
/// Says where memory lies that can be forgotten. Once, before the first `forget`; it should not be
/// much larger, because reports look through it.
void set_forgettable(const void* begin, const void* end);
/// What happens to this memory from now on is not compared with what happened before: it is another
/// block's. Address and size are rounded to whole words.
void forget(const void* address, size_t bytes);

/// A thread of ThreadSanitizer's, for code on a stack of its own.
void* make_thread();
void destroy_thread(void* thread);
void* this_thread();
/// Goes on as another one, which orders nothing.
void become(void* thread);

inline constexpr bool kAreFound = true;

#else

inline void release(const void*) {}
inline void acquire(const void*) {}
inline void set_forgettable(const void*, const void*) {}
inline void forget(const void*, size_t) {}

inline constexpr bool kAreFound = false;

#endif

/// Orders an atomic operation with all others on the same address.
class AtomicScope {
 public:
  explicit AtomicScope(const void* address) : address_(address) { acquire(address); }
  ~AtomicScope() { release(address_); }
  AtomicScope(const AtomicScope&) = delete;
  AtomicScope& operator=(const AtomicScope&) = delete;

 private:
  const void* address_;
};

}  // namespace lockstep::emulation::races
