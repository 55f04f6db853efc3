#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "configs/load.h"

/// Environment variables that set config fields: LOCKSTEP_TRAIN_STEPS=5 stands for train.steps.
namespace lockstep::config {

/// A variable that the program reads and that sets no field.
struct ProgramVariable {
  const char* name;
  const char* meaning;
};

/// All variables that the program reads and that set no field.
const std::vector<ProgramVariable>& program_variables();

/// "LOCKSTEP_TRAIN_STEPS" for "train.steps".
std::string variable_name(std::string_view path);

/// The variables of this process whose names start with LOCKSTEP_.
Variables process_variables();

/// Merges `variables` into `config`; values are written as for --set, and an empty one counts as
/// unset. Throws SourceError, with the nearest name, for a name that is neither a field's nor a
/// program variable.
void apply_variables(RunConfig& config, Origins& origins, const Variables& variables);

}  // namespace lockstep::config
