#pragma once

#include <map>
#include <string>
#include <string_view>

#include "configs/load.h"

/// Environment variables that set config fields: LOCKSTEP_TRAIN_STEPS=5 stands for train.steps.
namespace lockstep::config {

/// "LOCKSTEP_TRAIN_STEPS" for "train.steps".
std::string variable_name(std::string_view path);

/// The variables of this process whose names start with LOCKSTEP_.
Variables process_variables();

/// Merges `variables` into `config`; values are written as for --set, and an empty one counts as
/// unset. Throws SourceError, with the nearest name, for a name that is neither a field's nor a
/// program variable, and for a program variable with a value that is not accepted.
void apply_variables(RunConfig& config, Origins& origins, const Variables& variables);

}  // namespace lockstep::config
