#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, start and end inverted; RFC 3720 B.4).
/// To continue after earlier bytes, pass their result as `before`:
///   crc32c(b, crc32c(a)) == crc32c(a followed by b).
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

/// Table-driven version for processors without SSE4.2; `crc32c` falls back to it by itself.
uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t before = 0);

/// Form in which TensorBoard and TFRecord files store a CRC-32C: rotated right by 15 bits, plus a
/// constant. Masking keeps the CRC strong for data that itself contains CRCs.
constexpr uint32_t masked_crc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }

}  // namespace lockstep
