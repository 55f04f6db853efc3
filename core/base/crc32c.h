#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, start and end inverted; RFC 3720 B.4).
/// To go on after earlier bytes, pass their result as `before`:
///   crc32c(b, crc32c(a)) == crc32c(a followed by b).
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

/// The same by table, for processors without SSE4.2's instruction; crc32c chooses by itself.
uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t before = 0);

/// The form in which TensorBoard and TFRecord files store a CRC-32C, so that the CRC of data that
/// holds CRCs keeps its strength: rotated right by 15 bits, plus a constant.
constexpr uint32_t masked_crc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }

}  // namespace lockstep
