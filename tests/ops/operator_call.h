#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/dispatch/dispatcher.h"
#include "core/dispatch/value_tensors.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

using Arguments = std::vector<Value>;

/// All arguments of a sample in schema order, with defaults. Tensors are copies with the sample's
/// strides, so that a call may write into them.
Arguments arguments_of(const Operator& op, const Sample& sample);

/// The same elements and strides in another dtype.
Tensor cast_copy(const Tensor& tensor, DType dtype);
/// A tensor with the same geometry on the meta device.
Tensor on_meta(const Tensor& tensor);

/// What a call returned or wrote, in order: tensors (undefined for absent results) and numbers as
/// 0-d tensors.
struct Results {
  std::vector<Tensor> tensors;
};
/// Calls the operator with a fixed seed of the default generator.
Results call_operator(const Operator& op, Arguments& arguments);

/// Describes the first difference in shapes, dtypes or elements, or returns "". Elements may differ
/// by `tolerance`, absolute and relative; 0 means equal bits.
std::string difference(const Results& got, const Results& want, double tolerance);

/// All registered functional operators, sorted by name.
std::vector<const Operator*> functional_operators();

/// Calls `body(op, samples)` for each functional operator that has samples; a failure in it names
/// the operator.
void for_each_operator(const std::function<void(const Operator&, const OpSamples&)>& body);
/// Calls `body(sample)` for each sample; a failure in it names the sample, and so does an
/// exception.
void for_each_sample(std::span<const Sample> samples,
                     const std::function<void(const Sample&)>& body);

}  // namespace lockstep
