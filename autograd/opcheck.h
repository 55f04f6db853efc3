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
  GradcheckOptions gradcheck = {};
  bool second_derivative = false;  ///< also check second derivatives
  double tolerance = 1e-5;  ///< absolute and relative, for comparing two ways to compute a result
};

/// Checks on each sample that an operator behaves as its definition declares. Returns one line per
/// violation: "[my::op] sample 0: derivative: ..."; an empty list if there is none.
///
/// - mutation: only arguments that the schema marks `Tensor(a!)` change, and their version counters
///   are bumped;
/// - aliasing: a result shares memory with an argument only if the schema gives both one letter,
/// and
///   no two results share memory;
/// - rule: a call on meta gives the same sizes, dtypes and strides (not checked for operators whose
///   results depend on values);
/// - strides: a structured operator gives the same elements for column-major arguments;
/// - derivative: gradcheck with the sample's floating tensors in float64, which the operator must
///   accept; an operator without derivative must give a reason. Samples should avoid points where
///   the operator is not differentiable;
/// - batching: the declared rule gives the results of one call per sample, with each tensor
/// argument
///   batched alone and with all of them batched;
/// - autocast: the operator accepts the dtypes that its class will pass to it: bfloat16 for lower
///   precision, float32 for F32, both at once for promote.
///
/// Operators with a Generator argument are checked for mutation, aliasing and rule. Throws
/// DispatchError when a sample does not fit the schema.
std::vector<std::string> opcheck(const Operator& op, std::span<const OpSample> samples,
                                 const OpcheckOptions& options = {});
std::vector<std::string> opcheck(std::string_view op, std::span<const OpSample> samples,
                                 const OpcheckOptions& options = {});

}  // namespace lockstep
