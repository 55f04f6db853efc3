#pragma once

#include <vector>

#include "core/base/error.h"
#include "core/dispatch/dispatcher.h"
#include "core/dispatch/value_tensors.h"

namespace lockstep::conformance {

/// Thrown when results differ from a case; the message has both.
class Disagreement : public Error {
 public:
  using Error::Error;
};

/// Results in order, with the tensors of lists one by one. Seeds the default generator, so that
/// equal calls give equal results.
std::vector<Value> call(const Operator& op, std::vector<Value>& arguments);

/// Copies the tensor to another device with its whole storage, byte for byte, and the same strides
/// and offset. Returns `tensor` itself if it is already there.
Tensor moved_to(Device device, const Tensor& tensor);

/// Moves a call's tensors to `device`, and replaces its device argument, if any.
std::vector<Value> on_device(const Schema& schema, const std::vector<Value>& arguments,
                             Device device);

/// Makes a new leaf with its own storage and the layout of `tensor`: same sizes, strides, offset
/// and storage size. On the CPU it has the same elements, on meta none.
Tensor laid_out_alike(const Tensor& tensor, DType dtype, Device device);

}  // namespace lockstep::conformance
