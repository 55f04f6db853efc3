#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"
#include "kernels/cuda/random/random_words.h"

namespace lockstep::cuda {

/// out[i] = offset + scale * (random number i of the call).
struct RandomFill {
  RandomWords words;
  void* out;
  int64_t count;
  double scale;
  double offset;
  DType dtype;
  int32_t bits;  ///< random bits of a uniform f32
};

/// out[i] = first + (random integer below range).
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
