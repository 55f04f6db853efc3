#pragma once

#include <string>

#include "core/dispatch/dispatcher.h"
#include "tests/conformance/case_file.h"

namespace lockstep::conformance {

/// How far a case's second derivatives were checked.
struct SecondDerivatives {
  bool checked = true;
  /// Why not every element was, at the recorded arguments; empty when it was.
  std::string reason;
};

/// Compares the gradients that the case records, as functions of its arguments and of the gradients
/// of its results, with central differences in float64 (autograd/gradcheck.h). Floating arguments,
/// dtypes among them, become float64. The operator runs on `device`; differences are taken on the
/// cpu.
///
/// Cases of many elements are checked along one line through each argument. Where the recorded
/// arguments lie on a kink, or have derivatives that are not finite, a point beside them is taken.
/// Throws AutogradError when derivatives disagree.
SecondDerivatives check_second_derivatives(const Operator& op, const Case& one,
                                           const CaseFile& file, Device device);

}  // namespace lockstep::conformance
