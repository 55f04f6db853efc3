#pragma once

#include <string_view>

namespace lockstep::cuda {

/// The text of core/cuda/kernel.cuh, which kernels of plug-ins include.
std::string_view kernel_header();

}  // namespace lockstep::cuda
