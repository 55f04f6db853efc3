#pragma once

#include <string>

#include "launcher/build_facts.h"

namespace lockstep::launcher {

/// What `lockstep --version --json` prints: version, commit, compiler, language, build type,
/// instruction sets and optional parts, null where a part is not built in.
std::string version_json(const BuildFacts& facts);

}  // namespace lockstep::launcher
