#pragma once

#include <cstddef>
#include <span>

namespace lockstep {

/// Size of `bytes` after compression with a well-known program, as a reference for a language
/// model's bits per byte. Equals the program's output size for standard input. Throw
/// OutOfMemoryError if the compressor cannot allocate (xz needs about 12 times the input, at most
/// 674 MiB).
size_t gzip_size(std::span<const std::byte> bytes);   ///< gzip -9
size_t xz_size(std::span<const std::byte> bytes);     ///< xz -9
size_t bzip2_size(std::span<const std::byte> bytes);  ///< bzip2 -9

}  // namespace lockstep
