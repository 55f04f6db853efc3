#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep::conformance {

/// The first failing case of an operator.
struct Failure {
  std::string op;
  size_t cases = 0;       ///< number of cases of the operator
  size_t failed = 0;      ///< number of failed ones
  size_t first_case = 0;  ///< index of the first failed case in the file
  std::string message;    ///< what differed in that case
};

/// Numbers of cases. Cases are skipped when their operator is not registered, or when the requested
/// check is impossible for them.
struct Report {
  size_t passed = 0;
  size_t failed = 0;
  size_t skipped = 0;
  std::vector<Failure> failures;  ///< one per operator, sorted by name
  /// Why cases were skipped or checked only in part: reason -> operator -> number of cases.
  std::map<std::string, std::map<std::string, size_t>> reasons;
  /// Number of calls that fell back to the CPU, by operator (core/dispatch/cpu_fallback.h).
  std::map<std::string, int64_t> fallbacks;
};

struct RunOptions {
  std::string only;  ///< one operator, with or without "aten::"; empty: all
  /// Where the operators run. On meta, only shapes, strides and dtypes are compared.
  Device device = kCPU;
  /// Also checks the second derivatives of cases with expected gradients, in float64.
  bool double_backward = false;
  /// Also runs each call as a compiled function, which must give equal bits.
  bool compiled = false;
};

/// Runs the cases of every `<op>.json` in `directory`. Calls each as recorded; cases with expected
/// gradients run again with autograd. Throws DataError when the directory cannot be read or has no
/// matching case files, or when a file is malformed; DeviceError when the device cannot run
/// anything, or when second derivatives are requested on a device other than the CPU.
Report run_directory(const std::filesystem::path& directory, const RunOptions& options = {});

}  // namespace lockstep::conformance
