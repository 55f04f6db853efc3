#pragma once

#include <cstddef>

namespace lockstep::emulation {

/// Byte of uninitialized memory: NaN in every floating-point type.
inline constexpr unsigned char kUnwritten = 0xff;

/// Fills the __shared__ variables of the program or library that contains `code` with kUnwritten,
/// and forgets races with what came before where these can be told apart (is_own_code).
void fill_static_shared_memory(const void* code);

/// Whether `code` is part of the program or library that the emulation is part of.
bool is_own_code(const void* code);
/// Lets races::forget take shared memory of such code, and `bytes` at `address`, which lie in the
/// same file. Once.
void prepare_forgetting(const void* address, size_t bytes);

/// Fills `bytes` of the dynamic shared memory, and some bytes after them, with kUnwritten.
void fill_dynamic_shared_memory(size_t bytes);
/// Whether the bytes after the first `bytes` are still unwritten.
bool nothing_behind_dynamic_shared_memory(size_t bytes);

}  // namespace lockstep::emulation
