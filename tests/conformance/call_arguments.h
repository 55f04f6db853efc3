#pragma once

#include <string>
#include <vector>

#include "core/dispatch/schema.h"
#include "tests/conformance/case_file.h"

namespace lockstep::conformance {

/// A case's arguments in the order of `schema`, converted to its types, with defaults. The values
/// own their data; tensors are new leaves. Throws DataError when the case does not match the
/// schema: too many arguments, unknown keywords, a missing required argument, a value of another
/// type.
std::vector<Value> call_arguments(const Schema& schema, const Case& one, const CaseFile& file);

/// The argument, or element of a list argument, that an expected gradient is for.
const Tensor& differentiated(const Schema& schema, const std::vector<Value>& arguments,
                             const ExpectedGradient& gradient);

/// Name of that argument in messages: "weight", "tensors[1]".
std::string gradient_name(const Schema& schema, const ExpectedGradient& gradient);

}  // namespace lockstep::conformance
