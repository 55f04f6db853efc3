#include "core/process/process_environment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using train::TemporaryDirectory;

TEST(ProcessEnvironment, HasTheVariablesOfTheTimeWhenItWasMade) {
  const EnvironmentVariable before("SOME_VARIABLE", "before");
  const ProcessEnvironment environment;
  const EnvironmentVariable after("SOME_VARIABLE", "after");
  EXPECT_EQ(environment.value("SOME_VARIABLE"), "before");
  EXPECT_EQ(environment.value("SOME_VARIABL"), "");
  EXPECT_EQ(ProcessEnvironment().value("SOME_VARIABLE"), "after");
}

TEST(ProcessEnvironment, FindsProgramsWherePathSays) {
  const TemporaryDirectory folder;
  for (const char* name : {"one", "two"}) {
    std::filesystem::create_directory(folder.path() / name);
    std::ofstream(folder.path() / name / "tool") << "#!/bin/sh\n";
  }
  // Only the second is executable.
  std::filesystem::permissions(folder.path() / "two/tool", std::filesystem::perms::owner_all);
  const std::string one = folder.path() / "one", two = folder.path() / "two";
  const EnvironmentVariable path("PATH", (one + "::" + two).c_str());
  const ProcessEnvironment environment;
  EXPECT_EQ(environment.file_of("tool"), two + "/tool");
  EXPECT_EQ(environment.file_of("./tool"), "./tool");
  EXPECT_EQ(environment.file_of("none"), "none");
}

}  // namespace
}  // namespace lockstep
