#pragma once

#include <string>

#include "core/dispatch/dispatcher.h"
#include "tests/conformance/case_file.h"

namespace lockstep::conformance {

/// Calls the operator eagerly and as a compiled function (compile/compile.h) that is recorded in
/// one call and run in another, each time with tensors of their own. Results, written arguments and
/// the gradients that the case records must have equal bits. Returns why the call was not recorded,
/// or "". Throws Disagreement where bits differ.
std::string check_compiled(const Operator& op, const Case& one, const CaseFile& file,
                           Device device);

}  // namespace lockstep::conformance
