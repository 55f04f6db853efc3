#pragma once

#include "kernels/cuda/fault.cuh"
#include "kernels/cuda/index/index_list.h"

namespace lockstep::cuda {

/// Returns index i in [0, size), or -1 for none; records a fault if it is out of range.
__device__ inline int64_t read_index(const IndexList& list, int64_t i) {
  int64_t index = 0;
  switch (list.kind) {
    case IndexList::Kind::kPlace: {
      const uint32_t place = static_cast<const uint32_t*>(list.data)[i];
      return place == IndexList::kNoPlace ? -1 : static_cast<int64_t>(place);
    }
    case IndexList::Kind::kI64:
      index = static_cast<const int64_t*>(list.data)[i];
      break;
    case IndexList::Kind::kI32:
      index = static_cast<const int32_t*>(list.data)[i];
      break;
    default:
      index = static_cast<const uint8_t*>(list.data)[i];
  }
  if (index == list.skipped) return -1;
  if (index < list.low || index >= list.size) {
    note_fault(list.fault, index, list.low, list.size);
    return -1;
  }
  return index < 0 ? index + list.size : index;
}

}  // namespace lockstep::cuda
