#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep::train {

/// Facts for environment.json that only the calling program knows.
struct EnvironmentFacts {
  std::vector<std::string> command_line;         ///< argv
  std::string version;                           ///< Lockstep's
  int threads = 1;                               ///< arithmetic threads of this process
  Device device = kCPU;                          ///< where it computes
  std::map<std::string, std::string> libraries;  ///< versions, added to the ones known here
  std::string fault = {};                        ///< one made on purpose; empty: none
};

/// The contents of a run's environment.json: one JSON object with version, commit, compiler, cpu,
/// isa, arithmetic (core/device/arithmetic_facts.h), injected fault if there is one, cores and
/// memory allowed, threads, host, os, kernel, start time (local, with offset), working directory,
/// command line and library versions. Values that the system does not report are null.
std::string environment_json(const EnvironmentFacts& facts);

/// The commit checked out in the git working tree that contains `folder`; nothing if there is none.
/// Reads the repository's files, so git need not be installed. Does not detect uncommitted changes.
std::optional<std::string> git_commit(const std::filesystem::path& folder);

}  // namespace lockstep::train
