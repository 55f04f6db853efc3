#pragma once

#include <string_view>

namespace lockstep::cuda {

/// kernels/pointwise/loop_kernel.cuh with the headers of ours that it includes written out
/// (cmake/Preludes.cmake): what loop_source puts in front.
std::string_view kernel_prelude();

}  // namespace lockstep::cuda
