#pragma once

#include <string>

namespace lockstep::launcher {

/// What was decided when the program was built. Versions are empty for parts that are not built in.
struct BuildFacts {
  std::string commit;      ///< of git, 40 digits; empty if the sources are in no repository
  bool modified = false;   ///< whether tracked files differed from that commit
  std::string compiler;    ///< "GNU 12.2.0"
  std::string build_type;  ///< "Release"
  std::string processor;   ///< "x86_64"
  std::string cuda;        ///< of the toolkit
  std::string mpi;         ///< "Open MPI 4.1.4"
  std::string onednn;
  std::string lapack;
  std::string zstd;
  std::string protobuf;
};

/// Defined in a file that the build makes (cmake/BuildFacts.cmake) and that is part of the program
/// alone: the library and its users need not be linked again after each commit.
BuildFacts build_facts();

}  // namespace lockstep::launcher
