#pragma once

#include <string>

#include "core/dispatch/dispatcher.h"
#include "tests/conformance/case_file.h"

namespace lockstep::conformance {

/// Extent to which a case's second derivatives were checked.
struct SecondDerivatives {
  bool checked = true;
  /// Why not every element was checked at the recorded arguments, or "" if all were.
  std::string reason;
};

/// Compares the gradients that the case records, as functions of its arguments and cotangents, with
/// central differences in float64 (autograd/gradcheck.h). Floating arguments and dtypes become
/// float64. The operator runs on `device`; differences are taken on the CPU.
///
/// Cases with many elements are checked along one line through each argument. If the recorded
/// arguments are at a kink or have non-finite derivatives, a nearby point is used. Throws
/// AutogradError when derivatives disagree.
SecondDerivatives check_second_derivatives(const Operator& op, const Case& one,
                                           const CaseFile& file, Device device);

}  // namespace lockstep::conformance
