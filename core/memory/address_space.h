#pragma once

#include <cstddef>

namespace lockstep {

/// Bytes of address space that this process may still map under `ulimit -v`; SIZE_MAX without a
/// limit.
size_t address_space_left() noexcept;

/// Whether `bytes` of addresses may be reserved for later use, without memory: under a limit only a
/// quarter of what is left, since threads, files and libraries need addresses, too, and libraries
/// crash without.
bool may_reserve_addresses(size_t bytes) noexcept;

/// Throws OutOfMemoryError if `ulimit -v` or `-d` leave less than `bytes` to map now, with room for
/// the heap of a thread that starts meanwhile. Called before `user`, a library that ends the
/// process where it gets no memory.
void require_addresses(size_t bytes, const char* user);

}  // namespace lockstep
