#pragma once

#include <optional>
#include <string>

#include "core/dispatch/dispatcher.h"
#include "tests/conformance/case_file.h"

namespace lockstep::conformance {

/// Makes a case's call, and the gradients it records, on the meta device. Shapes and dtypes must be
/// the recorded ones, strides those of the same call on cpu. Throws Disagreement.
/// Returns why meta cannot tell, when results depend on values; that the call is refused is
/// checked.
std::optional<std::string> check_geometry(const Operator& op, const Case& one,
                                          const CaseFile& file);

}  // namespace lockstep::conformance
