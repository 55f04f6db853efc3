#pragma once

#include <cstdint>

#include "core/cuda/fault.h"

namespace lockstep::cuda {

/// A contiguous tensor of indices as kernels read it, by `read_index` of index_list.cuh.
struct IndexList {
  enum class Kind : uint8_t { kI64, kI32, kU8, kPlace };

  static constexpr uint32_t kNoPlace = 0xffffffff;

  const void* data;
  int64_t count;
  int64_t size;     ///< of the dimension that they index
  int64_t low;      ///< 0, or -size where negative ones count from the end
  Fault* fault;     ///< where others are noted; not used for kPlace, whose numbers were checked
  int64_t skipped;  ///< an index that stands for none, or one that there cannot be
  Kind kind;        ///< kPlace: uint32_t, kNoPlace standing for none
};

}  // namespace lockstep::cuda
