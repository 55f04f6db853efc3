#pragma once

// CUDA's atomic functions, for the types that CUDA supports. Only one GPU thread runs at a time and
// yields only in barriers and warp functions, so plain memory accesses are atomic.

#include "tests/emulation/races.h"

// NOLINTBEGIN: the names are CUDA's.
#define LS_ATOMIC(name, T, expression)                              \
  inline T name(T* address, T value) {                              \
    const ::lockstep::emulation::races::AtomicScope scope(address); \
    const T old = *address;                                         \
    *address = static_cast<T>(expression);                          \
    return old;                                                     \
  }
#define LS_ATOMIC_INTEGER(T)                                        \
  LS_ATOMIC(atomicExch, T, value)                                   \
  LS_ATOMIC(atomicMin, T, value < old ? value : old)                \
  LS_ATOMIC(atomicMax, T, value > old ? value : old)                \
  LS_ATOMIC(atomicAnd, T, old& value)                               \
  LS_ATOMIC(atomicOr, T, old | value)                               \
  LS_ATOMIC(atomicXor, T, old ^ value)                              \
  inline T atomicCAS(T* address, T expected, T value) {             \
    const ::lockstep::emulation::races::AtomicScope scope(address); \
    const T old = *address;                                         \
    if (old == expected) *address = value;                          \
    return old;                                                     \
  }
// Signed sums wrap around.
LS_ATOMIC(atomicAdd, int, static_cast<unsigned>(old) + static_cast<unsigned>(value))
LS_ATOMIC(atomicSub, int, static_cast<unsigned>(old) - static_cast<unsigned>(value))
LS_ATOMIC(atomicAdd, unsigned, old + value)
LS_ATOMIC(atomicSub, unsigned, old - value)
LS_ATOMIC(atomicAdd, unsigned long long, old + value)
LS_ATOMIC(atomicAdd, float, old + value)
LS_ATOMIC(atomicAdd, double, old + value)
LS_ATOMIC(atomicExch, float, value)
LS_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
LS_ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
LS_ATOMIC_INTEGER(int)
LS_ATOMIC_INTEGER(unsigned)
LS_ATOMIC_INTEGER(unsigned long long)
#undef LS_ATOMIC_INTEGER
#undef LS_ATOMIC
// NOLINTEND
