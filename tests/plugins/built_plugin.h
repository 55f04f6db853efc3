#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep {

/// Path of a plug-in of the tests: in the folder named by LOCKSTEP_TEST_PLUGINS in the environment,
/// or else where it was built.
inline std::filesystem::path built_plugin(const std::string& name) {
  const char* const folder = std::getenv("LOCKSTEP_TEST_PLUGINS");
  return std::filesystem::path(folder != nullptr ? folder : LOCKSTEP_TEST_PLUGINS) /
         ("lib" + name + ".so");
}

}  // namespace lockstep
