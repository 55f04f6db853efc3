#pragma once

#include <string>
#include <vector>

#include "configs/load.h"
#include "core/base/shell_text.h"  // IWYU pragma: export

/// Commands that are printed for the user to paste into a shell.
namespace lockstep::launcher {

/// `arguments` of a training command, without --fresh, so that the command goes on with its run.
/// Unless `directory` is empty, `--run-dir directory` replaces another --run-dir.
std::vector<std::string> going_on(const std::vector<std::string>& arguments,
                                  const std::string& directory);

/// The assignments before a command that give it those of `variables` (LOCKSTEP_*) that the user
/// set: all but the ones by which launchers tell ranks about their job. The text ends with a space
/// unless it is empty.
std::string assignments(const config::Variables& variables);

}  // namespace lockstep::launcher
