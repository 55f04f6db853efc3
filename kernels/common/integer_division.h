#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/common/functors.h"

namespace lockstep::functors {

// Integer division by zero has no value: the loop sets a note and continues; the backend throws
// when it sees the note.

/// Flag by which a kernel reports an error. Any number of threads may set it; the word lies in
/// memory that both the kernel and the CPU can write.
struct Note {
  uint32_t* word;
  LS_HOST_DEVICE void set() const {
#if defined(__CUDA_ARCH__)
    *static_cast<volatile uint32_t*>(word) = 1;
#else
    std::atomic_ref(*word).store(1, std::memory_order_relaxed);
#endif
  }
};

struct Quotient {
  static constexpr FunctorName kName = "Quotient";
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    return b == -1 ? Negate()(a) : a / b;
  }
};
struct FlooredQuotient {
  static constexpr FunctorName kName = "FlooredQuotient";
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    if (b == -1) return Negate()(a);
    const int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
};
struct Rest {
  static constexpr FunctorName kName = "Rest";
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const { return b == -1 ? 0 : a % b; }
};
struct FlooredRest {
  static constexpr FunctorName kName = "FlooredRest";
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    const int64_t rest = Rest()(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
/// F(a, b), or 0 and a note if b is 0.
template <class F>
struct Guarded {
  static constexpr FunctorName kName{"Guarded", F::kName};
  static constexpr bool kHeavy = true;
  Note zero;
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0) [[unlikely]] {
      zero.set();
      return 0;
    }
    return F()(a, b);
  }
};

}  // namespace lockstep::functors
