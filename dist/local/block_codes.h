#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace lockstep::dist {

/// Values that share a scale.
inline constexpr int64_t kCodedBlock = 256;

/// Blocks of `elements` values, the last of which may not be full.
inline int64_t coded_blocks(int64_t elements) { return (elements + kCodedBlock - 1) / kCodedBlock; }

/// Bytes of the codes of `elements` values, a multiple of kCodedBlock.
int64_t coded_bytes(int64_t elements, int bits);

/// Rounds values to `bits` (4 or 8) each, for sending. Of each block of 256 it keeps the largest
/// magnitude m in f32, and of each value the nearest of the 2^bits - 1 equidistant numbers from -m
/// to m. Returns u8 [blocks, bytes of a block]: the scale, then the values, two in a byte with 4
/// bits, the first in the lower half. `values`: f32 [n], n a multiple of 256, on any device. A
/// block with a value that is not finite comes back as NaN.
Tensor encode_blocks(const Tensor& values, int bits);

/// The numbers of `codes`, as f32 [n].
Tensor decode_blocks(const Tensor& codes, int bits);

}  // namespace lockstep::dist
