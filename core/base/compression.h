#pragma once

#include <cstddef>
#include <span>

namespace lockstep {

/// Bytes that well-known compressors need for `bytes`: a yardstick for a language model's bits per
/// byte. Sizes are those of the programs' output for standard input. Throw OutOfMemoryError if the
/// compressor gets no memory (xz wants about 12 times the input, at most 674 MiB).
size_t gzip_size(std::span<const std::byte> bytes);   ///< gzip -9
size_t xz_size(std::span<const std::byte> bytes);     ///< xz -9
size_t bzip2_size(std::span<const std::byte> bytes);  ///< bzip2 -9

}  // namespace lockstep
