#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep::train {

/// What only the program itself can say about where it runs.
struct EnvironmentFacts {
  std::vector<std::string> command_line;         ///< argv
  std::string version;                           ///< Lockstep's
  int threads = 1;                               ///< arithmetic threads of this process
  Device device = kCPU;                          ///< where it computes
  std::map<std::string, std::string> libraries;  ///< versions, beside those known here
};

/// The contents of a run's environment.json: one JSON object with version, commit, compiler, cpu,
/// isa, arithmetic (core/device/arithmetic_facts.h), cores and memory allowed, threads, host, os,
/// kernel, start time (local, with offset), working directory, command line and library versions.
/// What the system does not tell is null.
std::string environment_json(const EnvironmentFacts& facts);

/// The commit checked out in the git working tree that contains `folder`; nothing if there is none.
/// Read from the repository's files, so git need not be installed. Changes that are not committed
/// do not show.
std::optional<std::string> git_commit(const std::filesystem::path& folder);

}  // namespace lockstep::train
