#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

// Under AddressSanitizer a caching allocator marks the bytes that must not be accessed: those that
// are not allocated, and the padding from rounding a request up. Otherwise these do nothing.

namespace lockstep {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kCanPoison = true;
inline void poison(uintptr_t address, size_t bytes) noexcept {
  __asan_poison_memory_region(reinterpret_cast<const void*>(address), bytes);
}
inline void unpoison(uintptr_t address, size_t bytes) noexcept {
  __asan_unpoison_memory_region(reinterpret_cast<const void*>(address), bytes);
}
#else
inline constexpr bool kCanPoison = false;
inline void poison(uintptr_t, size_t) noexcept {}
inline void unpoison(uintptr_t, size_t) noexcept {}
#endif

}  // namespace lockstep
