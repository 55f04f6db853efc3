#pragma once

#include <span>

namespace lockstep::cuda {

/// The compiled modules of the pointwise_*.cu files; a kernel is in one of them.
std::span<const void* const> pointwise_images();

}  // namespace lockstep::cuda
