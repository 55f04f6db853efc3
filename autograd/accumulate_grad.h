#pragma once

#include "autograd/node.h"
#include "core/base/mutex.h"

namespace lockstep {

struct Meta;

/// The sink of a leaf: adds incoming gradients to the leaf's `grad`.
///
/// The first gradient is stored without a copy when it has no other owner and the layout of the
/// leaf (row-major where the leaf is not dense); otherwise it is copied into that layout. Later
/// gradients are added in place, or out of place while the backward itself is recorded.
/// Thread-safe: several backward calls may end in one leaf at once.
class AccumulateGrad final : public Node {
 public:
  /// Owned by the leaf's metadata, so it does not keep the leaf alive.
  explicit AccumulateGrad(TensorImpl* leaf);

  Gradients apply(std::span<Tensor> grads, const BackwardCall& call) override;
  std::string name() const override { return "AccumulateGrad"; }
  Tensor destination() const override;

  /// Called when the leaf is destroyed. Later gradients are dropped.
  void forget_leaf();

 private:
  /// Returns the tensor that stopped being the gradient.
  Tensor accumulate(Meta& meta, Tensor grad) LS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  TensorImpl* leaf_ LS_GUARDED_BY(mutex_);
};

/// Makes `destination`, e.g. a slot of a communication arena, the memory of the gradient of `leaf`;
/// an undefined tensor removes it. While the leaf has no gradient, a backward passes `destination`
/// to the derivative that first computes a contribution to it (`VjpContext::destination`), and adds
/// the others there. A gradient that ends elsewhere all the same is copied into it (counted,
/// core/device/copies.h). Afterwards `leaf.grad()` is `destination`, and later gradients are added
/// there. Throws AutogradError unless leaf is a leaf that requires grad, and ShapeError, DTypeError
/// or DeviceError when the destination does not match it.
void set_grad_destination(const Tensor& leaf, const Tensor& destination);

}  // namespace lockstep
