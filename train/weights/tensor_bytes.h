#pragma once

#include <cstddef>
#include <span>

#include "core/tensor/tensor.h"

namespace lockstep::train {

/// The elements of a tensor without gaps, in memory that the cpu reads.
inline std::span<const std::byte> bytes_of(const Tensor& contiguous) {
  return {static_cast<const std::byte*>(contiguous.data()), contiguous.nbytes()};
}

}  // namespace lockstep::train
