#pragma once

#include <string>

namespace CLI {
class App;
}

namespace lockstep::launcher {

/// A bash script that completes `app`'s verbs, their options and options' fixed choices as they are
/// now, and asks `app` itself ("completion paths") for config fields after --set. Everything else
/// is completed as a file name.
std::string bash_completion(const CLI::App& app);

}  // namespace lockstep::launcher
