#include "compile/native/toolchain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using train::TemporaryDirectory;

ToolResult run_shell(const std::string& script, const BuildLimits& limits = {}) {
  return run_tool({"sh", "-c", script}, limits);
}

TEST(RunTool, ReturnsTheStatusAndBothStreams) {
  const ToolResult result = run_shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_THAT(result.problem, IsEmpty());
}

TEST(RunTool, GivesNoInput) { EXPECT_EQ(run_shell("cat; echo end").output, "end\n"); }

TEST(RunTool, NamesAProgramThatDoesNotExist) {
  const ToolResult result = run_tool({"lockstep-no-such-program"}, {});
  EXPECT_EQ(result.status, -1);
  EXPECT_THAT(result.problem, HasSubstr("No such file"));
}

TEST(RunTool, TellsTheSignalThatEndedTheProgram) {
  const ToolResult result = run_shell("kill -SEGV $$");
  EXPECT_EQ(result.status, -1);
  EXPECT_EQ(result.problem, "it was ended by signal 11 (Segmentation fault)");
}

TEST(RunTool, EndsAProgramThatHangs) {
  BuildLimits limits;
  limits.time = std::chrono::milliseconds(50);
  const ToolResult result = run_shell("sleep 1000 & wait", limits);
  EXPECT_EQ(result.status, -1);
  EXPECT_THAT(result.problem, HasSubstr("did not end within"));
}

TEST(RunTool, EndsWithWhoNeedsIt) {
  BuildLimits limits;
  int asked = 0;
  limits.stops = [&] { return ++asked > 2; };
  EXPECT_THAT(run_shell("sleep 1000", limits).problem, HasSubstr("not needed any more"));
}

TEST(RunTool, KeepsTheBeginningOfALongOutput) {
  const ToolResult result = run_shell("head -c 1000000 /dev/zero; exit 5");
  EXPECT_EQ(result.status, 5);
  EXPECT_LT(result.output.size(), 100'000U);
}

TEST(RunTool, TakesTheEnvironmentAsItWasBefore) {
  const EnvironmentVariable before("TOOL_TEST", "before");
  const ProcessEnvironment environment;
  const EnvironmentVariable after("TOOL_TEST", "after"), no_path("PATH", "/nowhere");
  EXPECT_EQ(run_tool({"sh", "-c", "echo $TOOL_TEST"}, {}, environment).output, "before\n");
}

TEST(FindToolchain, TakesTheCompilerThatCxxNames) {
  const TemporaryDirectory folder;
  const auto compiler = folder.path() / "my++";
  std::ofstream(compiler) << "#!/bin/sh\necho my compiler 7\n";
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const EnvironmentVariable chosen("CXX", compiler.c_str());
  const auto found = find_toolchain({});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->program, compiler);
  EXPECT_EQ(found->version, "my compiler 7\n");
}

TEST(FindToolchain, FindsNoneOnAnEmptyPath) {
  const TemporaryDirectory folder;
  const EnvironmentVariable path("PATH", folder.path().c_str());
  const EnvironmentVariable chosen("CXX", nullptr);
  EXPECT_FALSE(find_toolchain({}));
}

TEST(CompileLibrary, ThrowsWhatTheCompilerSays) {
  const TemporaryDirectory folder;
  const auto source = folder.path() / "a.cc";
  std::ofstream(source) << "int f() { return unknown; }\n";
  const auto toolchain = find_toolchain({});
  if (!toolchain) GTEST_SKIP() << "there is no C++ compiler";
  expect_error<Error>([&] { compile_library(*toolchain, source, {}, folder.path() / "a.so", {}); },
                      "unknown");
}

TEST(CompileLibrary, SparesClangAFlagThatOnlyGccHas) {
  const TemporaryDirectory folder;
  // A compiler that writes down what it is called with.
  const std::filesystem::path program = folder / "compiler";
  std::ofstream(program) << "#!/bin/sh\necho \"$@\" > " << (folder / "called").string() << "\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto called_with = [&](const char* version) {
    compile_library({program.string(), version}, folder / "in.cc", {"-O3", "-fno-thread-jumps"},
                    folder / "out.so", {});
    std::string line;
    std::getline(std::ifstream(folder / "called") >> std::ws, line);
    return line;
  };
  EXPECT_THAT(called_with("g++ 12.2.0"), HasSubstr("-O3 -fno-thread-jumps"));
  const std::string of_clang = called_with("Debian clang version 19.1.7");
  EXPECT_THAT(of_clang, HasSubstr("-O3"));
  EXPECT_THAT(of_clang, testing::Not(HasSubstr("-fno-thread-jumps")));
}

}  // namespace
}  // namespace lockstep::compiler
