#pragma once

#include <string_view>

namespace lockstep::cuda {

/// The text of kernels/cuda/device_std.inc, which stands for the headers of the C++ library.
std::string_view device_std();

}  // namespace lockstep::cuda
