#pragma once

namespace lockstep::launcher {

/// Throws ConfigError for the first of the process's LOCKSTEP_* settings of the program (those that
/// set no field of a config) whose value is not understood.
void check_variables();

}  // namespace lockstep::launcher
