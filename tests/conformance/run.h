#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep::conformance {

/// The first of an operator's cases that does not agree.
struct Failure {
  std::string op;
  size_t cases = 0;       ///< of the operator
  size_t failed = 0;      ///< of these
  size_t first_case = 0;  ///< position in the file, from 0
  std::string message;    ///< what differed there
};

/// Counts are of cases. Skipped are those whose operator is not registered, and those of which the
/// check that was asked for could not be made.
struct Report {
  size_t passed = 0;
  size_t failed = 0;
  size_t skipped = 0;
  std::vector<Failure> failures;  ///< one an operator, by name
  /// Why cases were checked in part or skipped: by reason, cases by operator.
  std::map<std::string, std::map<std::string, size_t>> reasons;
  /// Calls that ran on the cpu instead of the device, by operator (core/dispatch/cpu_fallback.h).
  std::map<std::string, int64_t> fallbacks;
};

struct RunOptions {
  std::string only;  ///< one operator, with or without "aten::"; empty: all
  /// Every value is compared; on meta, shapes, strides and dtypes.
  Device device = kCPU;
  /// Also checks the second derivatives of cases with expected gradients, in float64.
  bool double_backward = false;
};

/// Runs the cases of every `<op>.json` in `directory`. Each is called as it stands; those with
/// expected gradients a second time, recorded and differentiated. Throws DataError when the
/// directory cannot be read, has no case files or none of `only`, or when a file is malformed;
/// DeviceError when nothing runs on the device, or second derivatives are asked for elsewhere than
/// on the cpu.
Report run_directory(const std::filesystem::path& directory, const RunOptions& options = {});

}  // namespace lockstep::conformance
