#pragma once

#include <mutex>

#include "autograd/node.h"

namespace lockstep {

struct Meta;

/// The sink of a leaf: adds what arrives to the leaf's `grad`.
///
/// The first gradient is taken over without a copy when nobody else holds it and its layout is the
/// leaf's (row-major where the leaf is not dense); otherwise it is copied into that layout. Later
/// ones are added in place, or out of place while the backward itself is recorded. Thread-safe:
/// several backward calls may end in one leaf at once.
class AccumulateGrad final : public Node {
 public:
  /// Owned by the leaf's metadata, so it does not keep the leaf alive.
  explicit AccumulateGrad(TensorImpl* leaf);

  Gradients apply(std::span<Tensor> grads, const BackwardCall& call) override;
  std::string name() const override { return "AccumulateGrad"; }
  Tensor destination() const override;

  /// Called when the leaf goes away: from now on gradients are dropped.
  void forget_leaf();

 private:
  /// Returns the tensor that stopped being the gradient.
  Tensor accumulate(Meta& meta, Tensor grad);

  mutable std::mutex mutex_;
  TensorImpl* leaf_;
};

/// Makes `destination` the place where the gradient of `leaf` ends, a slot of a communication arena
/// say; undefined undoes it. While the leaf has no gradient, a backward offers the place to the
/// derivative that computes it (`VjpContext::destination`) when that is the leaf's only
/// contribution, and copies the gradient into it otherwise (counted, core/device/copies.h).
/// Afterwards `leaf.grad()` is `destination`, and later gradients are added there. Throws
/// AutogradError unless leaf is a leaf that requires grad, and ShapeError, DTypeError or
/// DeviceError when the destination does not match it.
void set_grad_destination(const Tensor& leaf, const Tensor& destination);

}  // namespace lockstep
