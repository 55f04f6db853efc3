#pragma once

#include <string>

#include "kernels/cuda/row_layout.h"

namespace lockstep::cuda {

/// The text of a kernel for the program, whose layout is given. Each warp or block computes a row
/// with all steps, then the next.
std::string row_source(const RowProgram& program, const RowLayout& layout);

}  // namespace lockstep::cuda
