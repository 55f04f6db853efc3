#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"
#include "kernels/common/random_numbers.h"

namespace lockstep::cuda {

/// A call's Philox key, and its counter but for the group's number in the lowest bits.
struct RandomWords {
  uint32_t key[2];
  uint64_t low;
  uint32_t high[2];
};

/// out[i] = offset + scale * (number i of the call).
struct RandomFill {
  RandomWords words;
  void* out;
  int64_t count;
  double scale;
  double offset;
  DType dtype;
  int32_t bits;  ///< random ones of a uniform f32
};

/// out[i] = first + (a number below range).
struct RandomIntegers {
  RandomWords words;
  void* out;
  int64_t count;
  uint64_t first;
  uint64_t range;
  DType dtype;
};

/// out[i] = 0 or 1.
struct RandomBits {
  RandomWords words;
  void* out;
  int64_t count;
  KeptWords kept;
  DType dtype;
};

struct RandomDropout {
  RandomWords words;
  const void* input;
  void* out;
  uint8_t* mask;
  int64_t count;
  double scale;
  KeptWords kept;
};

}  // namespace lockstep::cuda
