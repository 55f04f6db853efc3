#pragma once

#include <string>
#include <vector>

#include "core/dispatch/schema.h"
#include "tests/conformance/case_file.h"

namespace lockstep::conformance {

/// A case's arguments in the order of `schema`, each of the type it names, defaults filled in. The
/// values own what they hold; tensors are new leaves. Throws DataError when the case does not fit
/// the schema: too many arguments, unknown keywords, a required one missing, a value of another
/// type.
std::vector<Value> call_arguments(const Schema& schema, const Case& one, const CaseFile& file);

/// The argument, or the element of a list argument, that an expected gradient belongs to.
const Tensor& differentiated(const Schema& schema, const std::vector<Value>& arguments,
                             const ExpectedGradient& gradient);

/// Its name in a message: "weight", "tensors[1]".
std::string gradient_name(const Schema& schema, const ExpectedGradient& gradient);

}  // namespace lockstep::conformance
