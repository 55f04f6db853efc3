#pragma once

#include <string_view>

namespace lockstep::cuda {

/// kernels/pointwise/row_kernel.cuh with the headers of ours that it includes written out
/// (cmake/Preludes.cmake): what row_source puts in front.
std::string_view row_prelude();

}  // namespace lockstep::cuda
