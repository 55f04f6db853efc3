#pragma once

#include <functional>
#include <vector>

#include "core/base/error.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep::conformance {

/// What a case says does not hold; the message says what came instead.
class Disagreement : public Error {
 public:
  using Error::Error;
};

/// Results in order; a list counts each of its tensors. The default generator is seeded alike each
/// time, so that equal calls give equal results.
std::vector<Value> call(const Operator& op, std::vector<Value>& arguments);

/// `arguments` with each defined tensor, alone or in a list, replaced.
std::vector<Value> map_tensors(const std::vector<Value>& arguments,
                               const std::function<Tensor(const Tensor&)>& to);

/// The tensor on another device: its whole storage is copied, byte for byte, and it lies there as
/// it did. `tensor` itself where it is there already.
Tensor moved_to(Device device, const Tensor& tensor);

/// A call's arguments with its tensors, and where it names one its device, on `device`.
std::vector<Value> on_device(const Schema& schema, const std::vector<Value>& arguments,
                             Device device);

/// A new leaf that lies in a storage of its own as `tensor` lies in its: same sizes, strides,
/// offset, room around it. On cpu it has the same elements; on meta it has none.
Tensor laid_out_alike(const Tensor& tensor, DType dtype, Device device);

}  // namespace lockstep::conformance
