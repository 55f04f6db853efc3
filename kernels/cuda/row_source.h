#pragma once

#include <string>

#include "core/dispatch/row_step.h"

namespace lockstep::cuda {

/// The text of a kernel for the program (row_layout.h). Each warp or block computes a row with all
/// steps, then the next.
std::string row_source(const RowProgram& program);

}  // namespace lockstep::cuda
