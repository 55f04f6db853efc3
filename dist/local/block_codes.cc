#include "dist/local/block_codes.h"

#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep::dist {

namespace {

constexpr int64_t kScaleBytes = 4;

/// The largest code: codes are -largest to largest, sent with `largest` added.
double largest_code(int bits) { return bits == 4 ? 7 : 127; }

int64_t bytes_of_block(int bits) { return kScaleBytes + kCodedBlock * bits / 8; }

}  // namespace

int64_t coded_bytes(int64_t elements, int bits) {
  return elements / kCodedBlock * bytes_of_block(bits);
}

Tensor encode_blocks(const Tensor& values, int bits) {
  LS_ASSERT(bits == 4 || bits == 8);
  LS_CHECK(values.dtype() == DType::kF32 && values.numel() % kCodedBlock == 0, ShapeError,
           "[encode_blocks] expected float32 values, a multiple of {}, got {} of {}.", kCodedBlock,
           values.numel(), name(values.dtype()));
  const Tensor blocks = values.view({-1, kCodedBlock});
  const Tensor scales = amax(abs(blocks), {1}, true) / largest_code(bits);
  // 0 / 0, and what is divided by an infinity or NaN, is code 0: such a scale times it says so.
  const Tensor multiples = blocks / scales;
  Tensor codes =
      round(masked_fill(multiples, logical_not(isfinite(multiples)), 0)) + largest_code(bits);
  codes = codes.to(DType::kU8);
  if (bits == 4) {
    const Tensor pairs = codes.view({-1, kCodedBlock / 2, 2});
    codes = bitwise_or(pairs.select(2, 0), bitwise_left_shift(pairs.select(2, 1), 4));
  }
  return cat({view(scales, DType::kU8), codes}, 1);
}

Tensor decode_blocks(const Tensor& codes, int bits) {
  const Tensor scales = view(codes.slice(1, 0, kScaleBytes).contiguous(), DType::kF32);
  Tensor numbers = codes.slice(1, kScaleBytes);
  if (bits == 4) {
    numbers = stack({bitwise_and(numbers, 15), bitwise_right_shift(numbers, 4)}, 2)
                  .view({-1, kCodedBlock});
  }
  return ((numbers.to(DType::kF32) - largest_code(bits)) * scales).view({-1});
}

}  // namespace lockstep::dist
