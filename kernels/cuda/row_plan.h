#pragma once

#include <memory>

#include "core/dispatch/row_step.h"

namespace lockstep::cuda {

/// How one kernel computes operators along rows that were captured (kept_rows.h); null if their
/// rows are too long, or what they compute in between takes more shared memory than there is.
std::unique_ptr<const RowPlan> plan_rows(RowProgram program);

}  // namespace lockstep::cuda
