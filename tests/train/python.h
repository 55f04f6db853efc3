#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {

/// Python interpreter for tests against Python's libraries: TEST_PYTHON, or else python3.
inline std::string python() {
  const char* chosen = std::getenv("TEST_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

/// Returns the reason to skip tests that need `module`, or "" if it is installed.
inline std::string python_lacks(const std::string& module, const std::string& packages) {
  const std::string check = fmt::format("'{}' -c 'import {}' > /dev/null 2>&1", python(), module);
  if (std::system(check.c_str()) == 0) return "";
  return fmt::format("{} has no module {} (pip install {}; TEST_PYTHON names another interpreter)",
                     python(), module, packages);
}

/// Runs a script in `folder` and returns what it prints.
inline std::string run_python(const TemporaryDirectory& folder, const std::string& script) {
  put_file(folder / "script.py", script);
  const std::string command =
      fmt::format("cd '{}' && '{}' script.py > out 2> err", folder.path().string(), python());
  EXPECT_EQ(std::system(command.c_str()), 0) << file_content(folder / "err");
  return file_content(folder / "out");
}

}  // namespace lockstep::train
