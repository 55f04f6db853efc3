#pragma once

#include <string>

#include "train/trainer.h"

namespace lockstep::train {

/// What a step came to, as bytes that another rank of the same build reads; every number keeps its
/// bits.
std::string to_bytes(const StepResult& step);
/// Throws DataError for other bytes.
StepResult step_of_bytes(const std::string& bytes);

}  // namespace lockstep::train
