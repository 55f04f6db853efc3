#pragma once

#include <string>

namespace lockstep::launcher {

class Verb;

/// Returns a bash script that completes the verbs of `program`, their options and fixed choices.
/// For config fields after --set the script calls `program` ("completion paths"); anything else is
/// completed as a file name.
std::string bash_completion(const Verb& program);

}  // namespace lockstep::launcher
