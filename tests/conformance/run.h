#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::conformance {

/// The first of an operator's cases that does not agree.
struct Failure {
  std::string op;
  size_t cases = 0;       ///< of the operator
  size_t failed = 0;      ///< of these
  size_t first_case = 0;  ///< position in the file, from 0
  std::string message;    ///< what differed there
};

/// Counts are of cases. Skipped are those whose operator is not registered.
struct Report {
  size_t passed = 0;
  size_t failed = 0;
  size_t skipped = 0;
  std::vector<Failure> failures;  ///< one an operator, by name
};

/// Runs the cases of every `<op>.json` in `directory`, or of operator `only` (with or without
/// "aten::") when it is not empty. Each is called as it stands; those with expected gradients a
/// second time, recorded and differentiated. Throws DataError when the directory cannot be read,
/// has no case files or none of `only`, or when a file is malformed.
Report run_directory(const std::filesystem::path& directory, const std::string& only = "");

}  // namespace lockstep::conformance
