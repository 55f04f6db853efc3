#pragma once

#include <string>

namespace lockstep::launcher {

class Verb;

/// Returns a zsh script that completes what bash_completion() does, with help texts. Works as an
/// autoloaded function called "_lockstep" and when it is sourced.
std::string zsh_completion(const Verb& program);

}  // namespace lockstep::launcher
