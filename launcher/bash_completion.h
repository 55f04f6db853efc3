#pragma once

#include <string>

namespace lockstep::launcher {

class Verb;

/// A bash script that completes `program`'s verbs, their options and options' fixed choices as they
/// are now, and asks `program` itself ("completion paths") for config fields after --set.
/// Everything else is completed as a file name.
std::string bash_completion(const Verb& program);

}  // namespace lockstep::launcher
