#include "autograd/saved_tensor_hooks.h"

#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"

namespace lockstep {

SavedTensorHooksGuard::SavedTensorHooksGuard(SavedTensorHooks hooks)
    : hooks_(std::make_shared<const SavedTensorHooks>(std::move(hooks))),
      innermost_(detail::saved_tensor_hooks, this) {}

PackedTensor::PackedTensor(const Tensor& tensor)
    : hooks(detail::saved_tensor_hooks->hooks_),
      sizes(tensor.impl()->sizes),
      dtype(tensor.dtype()),
      device(tensor.device()) {
  const ScopedValue<const SavedTensorHooksGuard*> outer(
      detail::saved_tensor_hooks, detail::saved_tensor_hooks->innermost_.outer());
  const NoGradGuard no_grad;
  const uint32_t before = tensor.version();
  data = hooks->pack(tensor);
  LS_CHECK(tensor.version() == before, AutogradError,
           "[saved_tensor_hooks] the pack hook changed the tensor in place: {}. Pack a clone() "
           "instead.",
           to_string(tensor));
}

Tensor PackedTensor::unpack(std::string_view op) const {
  Tensor tensor = hooks->unpack(data);
  LS_CHECK(tensor.defined(), AutogradError,
           "[saved_tensor_hooks] the unpack hook gave an undefined tensor to {}: expected {}{}.",
           op, to_string(dtype), to_string(sizes));
  LS_CHECK(same(tensor.sizes(), sizes) && tensor.dtype() == dtype && tensor.device() == device,
           AutogradError,
           "[saved_tensor_hooks] the unpack hook gave {} another tensor than was packed: expected "
           "{}{} on {}, got {}.",
           op, to_string(dtype), to_string(sizes), to_string(device), to_string(tensor));
  return tensor;
}

}  // namespace lockstep
