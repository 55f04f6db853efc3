#pragma once

#include <optional>
#include <string>

#include "core/dispatch/dispatcher.h"
#include "tests/conformance/case_file.h"

namespace lockstep::conformance {

/// Makes a case's call and its recorded gradients on the meta device. Shapes and dtypes must equal
/// the recorded ones, strides those of the same call on the CPU. Throws Disagreement. If results
/// depend on values, checks that meta refuses the call and returns the reason.
std::optional<std::string> check_geometry(const Operator& op, const Case& one,
                                          const CaseFile& file);

}  // namespace lockstep::conformance
