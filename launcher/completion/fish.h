#pragma once

#include <string>

namespace lockstep::launcher {

class Verb;

/// Returns a fish script that completes what bash_completion() does, with help texts.
std::string fish_completion(const Verb& program);

}  // namespace lockstep::launcher
