#include "tests/conformance/recorded_call.h"

#include "core/device/transfer.h"
#include "core/tensor/generator.h"
#include "tests/conformance/elements.h"

namespace lockstep::conformance {

std::vector<Value> call(const Operator& op, std::vector<Value>& arguments) {
  manual_seed(7);
  Stack stack(arguments);
  op.call_boxed(stack);
  std::vector<Value> results;
  for (Value& result : stack.results()) {
    if (result.is_tensor_list()) {
      for (Tensor& tensor : result.take_tensors()) results.emplace_back(std::move(tensor));
    } else {
      results.push_back(std::move(result));
    }
  }
  return results;
}

std::vector<Value> on_device(const Schema& schema, const std::vector<Value>& arguments,
                             Device device) {
  std::vector<Value> moved =
      map_tensors(arguments, [&](const Tensor& tensor) { return moved_to(device, tensor); });
  for (size_t i = 0; i < moved.size(); ++i) {
    if (schema.arguments[i].type.base == BaseType::kDevice) moved[i] = Value(device);
  }
  return moved;
}

Tensor moved_to(Device device, const Tensor& tensor) {
  if (!tensor.defined() || tensor.device() == device) return tensor;
  const size_t bytes = tensor.storage()->bytes();
  const Tensor stored = empty_tensor({static_cast<int64_t>(bytes)}, DType::kU8, device);
  transfer_bytes(stored.storage()->data(), device, tensor.storage()->data(), tensor.device(),
                 bytes);
  return alias_tensor(stored, to_dims(tensor.sizes()), to_dims(tensor.strides()),
                      tensor.storage_offset(), tensor.dtype(), false);
}

Tensor laid_out_alike(const Tensor& tensor, DType dtype, Device device) {
  const auto room = static_cast<int64_t>(tensor.storage()->bytes() / size_of(tensor.dtype()));
  const Tensor stored = empty_tensor({room}, dtype, device);
  if (device == kCPU) {
    const Tensor whole = alias_tensor(tensor, {room}, {1}, 0, tensor.dtype(), false);
    if (is_floating(tensor.dtype())) {
      set_elements(stored, elements_as<double>(whole));
    } else {
      set_elements(stored, elements_as<int64_t>(whole));
    }
  }
  return alias_tensor(stored, to_dims(tensor.sizes()), to_dims(tensor.strides()),
                      tensor.storage_offset(), dtype, false);
}

}  // namespace lockstep::conformance
