#pragma once

#include <cstdint>

#include "core/cuda/fault.h"

namespace lockstep::cuda {

/// A contiguous tensor of indices, read by `read_index` of index_list.cuh.
struct IndexList {
  enum class Kind : uint8_t { kI64, kI32, kU8, kPlace };

  static constexpr uint32_t kNoPlace = 0xffffffff;

  const void* data;
  int64_t count;
  int64_t size;     ///< size of the indexed dimension
  int64_t low;      ///< lowest valid index: 0, or -size if negative ones count from the end
  Fault* fault;     ///< records indices out of range; unused for kPlace, already checked
  int64_t skipped;  ///< an index that means none (such as a padding index), or an impossible value
  Kind kind;        ///< kPlace: uint32_t, where kNoPlace means none
};

}  // namespace lockstep::cuda
