#pragma once

#include <any>
#include <functional>
#include <memory>

#include "autograd/node.h"

namespace lockstep {

/// How tensors that backward needs are kept: compressed, on another device, recomputed, ...
struct SavedTensorHooks {
  /// Called when an operator saves a tensor; what it returns is kept in the tensor's place. The
  /// tensor has no history. It must not be changed in place.
  std::function<std::any(const Tensor& tensor)> pack;
  /// Called whenever backward reads it; gives a tensor of the same shape, dtype and device.
  std::function<Tensor(const std::any& packed)> unpack;
};

/// While alive, what this thread's operators save for backward is packed by `hooks`, and unpacked
/// by them when it is read, also after the guard is gone. The innermost guard decides. Inside pack
/// the guards outside of this one hold, and nothing is recorded.
///
/// A packed tensor's version is not checked: the hooks answer for what they give back.
class SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks);
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
  SavedTensorHooksGuard& operator=(const SavedTensorHooksGuard&) = delete;

 private:
  friend struct PackedTensor;
  std::shared_ptr<const SavedTensorHooks> hooks_;
  const SavedTensorHooksGuard* outer_;
};

namespace detail {
inline thread_local constinit const SavedTensorHooksGuard* saved_tensor_hooks = nullptr;
}  // namespace detail

/// What pack hooks made of one tensor.
struct PackedTensor {
  std::shared_ptr<const SavedTensorHooks> hooks;
  std::any data;
  Dims sizes;
  DType dtype;
  Device device;
  Edge edge;  ///< of an argument: where its gradient goes

  /// Packs with the innermost guard's hooks, of which there must be one. Throws AutogradError when
  /// the hook changes the tensor in place.
  explicit PackedTensor(const Tensor& tensor);
  /// Throws AutogradError, naming `op`, when the hook gives another shape, dtype or device.
  Tensor unpack(std::string_view op) const;
};

}  // namespace lockstep
