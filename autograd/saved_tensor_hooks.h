#pragma once

#include <any>
#include <functional>
#include <memory>

#include "autograd/node.h"
#include "core/base/scoped_value.h"

namespace lockstep {

/// Hooks that decide how saved tensors are kept: compressed, on another device, recomputed, ...
struct SavedTensorHooks {
  /// Called when an operator saves a tensor; its result is kept instead of the tensor. The tensor
  /// has no history and must not be changed in place.
  std::function<std::any(const Tensor& tensor)> pack;
  /// Called whenever backward reads the tensor. Must return one of the same shape, dtype and
  /// device.
  std::function<Tensor(const std::any& packed)> unpack;
};

/// While alive, tensors that this thread's operators save for backward are packed by `hooks`. They
/// are unpacked by the same hooks when they are read, also after the guard was destroyed. Only the
/// innermost guard applies. Inside `pack` the next outer guard applies, and nothing is recorded.
///
/// The version of a packed tensor is not checked: the hooks are responsible for what they return.
class SavedTensorHooksGuard {
 public:
  [[nodiscard]] explicit SavedTensorHooksGuard(SavedTensorHooks hooks);

 private:
  friend struct PackedTensor;
  std::shared_ptr<const SavedTensorHooks> hooks_;
  ScopedValue<const SavedTensorHooksGuard*> innermost_;
};

namespace detail {
inline thread_local constinit const SavedTensorHooksGuard* saved_tensor_hooks = nullptr;
}  // namespace detail

/// One tensor packed by hooks.
struct PackedTensor {
  std::shared_ptr<const SavedTensorHooks> hooks;
  std::any data;
  Dims sizes;
  DType dtype;
  Device device;
  Edge edge;  ///< of an argument: the edge of its gradient

  /// Packs with the innermost guard's hooks, of which there must be one. Throws AutogradError when
  /// the hook changes the tensor in place.
  explicit PackedTensor(const Tensor& tensor);
  /// Throws AutogradError, naming `op`, when the hook gives another shape, dtype or device.
  Tensor unpack(std::string_view op) const;
};

}  // namespace lockstep
