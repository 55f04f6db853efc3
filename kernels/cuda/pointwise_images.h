#pragma once

#include <span>

namespace lockstep::cuda {

/// The compiled modules of the kernels/pointwise/*.cu files; each kernel is in one of them.
std::span<const void* const> pointwise_images();

}  // namespace lockstep::cuda
