#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/process/process_environment.h"

namespace lockstep::compiler {

/// A C++ compiler of this machine.
struct Toolchain {
  std::string program;  ///< a path, or a name on PATH
  std::string version;  ///< what it prints of itself; part of what a compiled library is known by
};

/// When to give up: compilers hang and processes end.
struct BuildLimits {
  std::chrono::milliseconds time = std::chrono::seconds(120);
  std::function<bool()> stops = [] { return false; };  ///< asked every few milliseconds
};

/// How a program ended.
struct ToolResult {
  int status = 0;       ///< its exit status; -1 if it was ended, by a signal or by us
  std::string output;   ///< both streams
  std::string problem;  ///< why it did not run or not to its end; empty if it did
};

/// Runs a program, at a low priority and without input, and waits for it. It and its children are
/// killed when a limit is reached.
ToolResult run_tool(const std::vector<std::string>& command, const BuildLimits& limits,
                    const ProcessEnvironment& environment = {});

/// The first of $CXX, c++, g++ and clang++ that runs; nullopt if none does.
std::optional<Toolchain> find_toolchain(const BuildLimits& limits,
                                        const ProcessEnvironment& environment = {});

/// Compiles a file to a shared library. Throws Error with what the compiler says.
void compile_library(const Toolchain& toolchain, const std::filesystem::path& source,
                     const std::vector<std::string>& flags, const std::filesystem::path& library,
                     const BuildLimits& limits, const ProcessEnvironment& environment = {});

}  // namespace lockstep::compiler
