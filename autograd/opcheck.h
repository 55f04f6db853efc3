#pragma once

#include <span>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "core/dispatch/call_op.h"

namespace lockstep {

/// One call to check an operator with: positional arguments and named ones, as `bind_arguments`
/// takes them. Tensors are borrowed and never changed.
struct OpSample {
  std::vector<Value> arguments;
  std::vector<NamedValue> named;
};

struct OpcheckOptions {
  GradcheckOptions gradcheck;
  bool second_derivative = false;  ///< checks that as well
  double tolerance = 1e-5;  ///< absolute + relative, where two ways to one result are compared
};

/// Checks that an operator keeps what its definition says, on each sample, and returns what it does
/// not, a line each: "[my::op] sample 0: derivative: ...". Nothing means that all is well.
///
/// - mutation: no argument changes that the schema does not mark `Tensor(a!)`, and those that do
///   change count a version;
/// - aliasing: no result shares memory with an argument unless the schema gives both one letter,
/// and
///   no two results share any;
/// - rule: a call on meta gives the same sizes, dtypes and strides (operators whose results depend
///   on values are left out);
/// - strides: a structured operator gives the same elements when its arguments lie column by
/// column;
/// - derivative: gradcheck with the sample's floating tensors in float64, which the operator must
///   take; an operator without derivative must say why. Samples should stay away from kinks;
/// - batching: the declared rule gives what calls one by one give, each tensor argument batched
/// alone
///   and all together;
/// - autocast: the operator takes the dtypes that its class will give it: bfloat16 for lower
///   precision, float32 for F32, both at once for promote.
///
/// Operators with a Generator argument are checked for mutation, aliasing and rule. Throws
/// DispatchError when a sample does not fit the schema.
std::vector<std::string> opcheck(const Operator& op, std::span<const OpSample> samples,
                                 const OpcheckOptions& options = {});
std::vector<std::string> opcheck(std::string_view op, std::span<const OpSample> samples,
                                 const OpcheckOptions& options = {});

}  // namespace lockstep
