#pragma once

#include <cstddef>

namespace lockstep::emulation {

/// What memory begins with that nobody wrote: NaN in every floating-point type.
inline constexpr unsigned char kUnwritten = 0xff;

/// Unwrites the __shared__ variables of the program or library that `code` belongs to.
void fill_static_shared_memory(const void* code);

/// Unwrites `bytes` of the dynamic shared memory, and some behind them.
void fill_dynamic_shared_memory(size_t bytes);
/// Whether what lies behind the `bytes` is still unwritten.
bool nothing_behind_dynamic_shared_memory(size_t bytes);

}  // namespace lockstep::emulation
