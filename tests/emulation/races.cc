#include "tests/emulation/races.h"

#if defined(LOCKSTEP_THREAD_SANITIZER)

#include <cstdint>

// Of ThreadSanitizer's interface; GCC's header lacks some of them.
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_java_init(unsigned long begin, unsigned long bytes);
void __tsan_java_alloc(unsigned long address, unsigned long bytes);
void __tsan_java_free(unsigned long address, unsigned long bytes);
}

namespace lockstep::emulation::races {

namespace {

constexpr unsigned kNoSync = 1;  ///< flag of __tsan_switch_to_fiber
constexpr uintptr_t kWord = 8;

uintptr_t word_at(const void* address) {
  return reinterpret_cast<uintptr_t>(address) / kWord * kWord;
}

}  // namespace

void release(const void* address) { __tsan_release(const_cast<void*>(address)); }
void acquire(const void* address) { __tsan_acquire(const_cast<void*>(address)); }

// The interface for Java's heap is the one by which ThreadSanitizer learns of memory that is used
// anew without malloc.
void set_forgettable(const void* begin, const void* end) {
  const uintptr_t first = word_at(begin), last = word_at(end) + kWord;
  __tsan_java_init(first, last - first);
}

void forget(const void* address, size_t bytes) {
  const uintptr_t begin = word_at(address);
  const uintptr_t end = word_at(static_cast<const char*>(address) + bytes + kWord - 1);
  if (begin == end) return;
  __tsan_java_free(begin, end - begin);
  __tsan_java_alloc(begin, end - begin);
}

void* make_thread() { return __tsan_create_fiber(0); }
void destroy_thread(void* thread) { __tsan_destroy_fiber(thread); }
void* this_thread() { return __tsan_get_current_fiber(); }
void become(void* thread) { __tsan_switch_to_fiber(thread, kNoSync); }

}  // namespace lockstep::emulation::races

#endif
