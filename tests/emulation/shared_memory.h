#pragma once

#include <cstddef>

namespace lockstep::emulation {

/// Byte of uninitialized memory: NaN in every floating-point type.
inline constexpr unsigned char kUnwritten = 0xff;

/// Fills the __shared__ variables of the program or library that contains `code` with kUnwritten.
void fill_static_shared_memory(const void* code);

/// Fills `bytes` of the dynamic shared memory, and some bytes after them, with kUnwritten.
void fill_dynamic_shared_memory(size_t bytes);
/// Whether the bytes after the first `bytes` are still unwritten.
bool nothing_behind_dynamic_shared_memory(size_t bytes);

}  // namespace lockstep::emulation
