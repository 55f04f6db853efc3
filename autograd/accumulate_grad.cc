#include "autograd/accumulate_grad.h"

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "autograd/ownership.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/device/copies.h"

namespace lockstep {

namespace {

Dims gradient_strides(const TensorImpl& leaf) {
  return is_dense(leaf.sizes, leaf.strides) ? leaf.strides : contiguous_strides(leaf.sizes);
}

/// Copies `grad` into the layout of gradients of `leaf`.
Tensor copy_for(const TensorImpl& leaf, const Tensor& grad) {
  Tensor copy =
      empty_strided_tensor(leaf.sizes, gradient_strides(leaf), grad.dtype(), grad.device());
  copy.copy_(grad);
  return copy;
}

}  // namespace

AccumulateGrad::AccumulateGrad(TensorImpl* leaf) : Node(kSinkSequence), leaf_(leaf) {
  add_output(*leaf);
}

void AccumulateGrad::forget_leaf() {
  const MutexLock lock(mutex_);
  leaf_ = nullptr;
}

Tensor AccumulateGrad::destination() const {
  const MutexLock lock(mutex_);
  if (leaf_ == nullptr) return {};
  const Meta& meta = meta_of(*leaf_);
  return meta.grad.defined() ? Tensor() : meta.destination;
}

Gradients AccumulateGrad::apply(std::span<Tensor> grads, const BackwardCall&) {
  // Freed after the lock is released: the old gradient's graph may hold the last reference to the
  // leaf, and the leaf's destructor takes the lock.
  Tensor replaced;
  Tensor leaf;
  {
    const MutexLock lock(mutex_);
    if (leaf_ == nullptr) return {};
    replaced = accumulate(meta_of(*leaf_), std::move(grads[0]));
    if (hooks() != nullptr && !hooks()->accumulated.empty()) {
      // Another thread may have released the last reference to the leaf and be on its way to
      // forget_leaf(), which waits for mutex_: the memory is valid, but the count may be zero.
      leaf = Tensor(Ref<TensorImpl>::share_if_alive(leaf_));
    }
  }
  if (leaf.defined()) {
    hooks()->accumulated.each([&](const auto& hook) { hook(leaf); });
  }
  return {};
}

Tensor AccumulateGrad::accumulate(Meta& meta, Tensor grad) {
  const bool recording = is_grad_enabled();
  if (meta.destination.defined() && !recording) {
    if (meta.grad.defined() && same_place(meta.grad, meta.destination)) {
      meta.grad.add_(grad);
      return {};
    }
    if (meta.grad.defined()) grad = meta.grad.add(grad);
    if (!same_place(grad, meta.destination)) {
      count_hidden_copy("AccumulateGrad", grad, "the gradient has a place where it must end");
      meta.destination.copy_(grad);
    }
    return std::exchange(meta.grad, meta.destination);
  }
  if (meta.grad.defined()) {
    if (recording) return std::exchange(meta.grad, meta.grad.add(grad));
    meta.grad.add_(grad);
    return {};
  }
  const bool fits =
      same(grad.strides(), gradient_strides(*leaf_)) || (leaf_->contiguous && grad.is_contiguous());
  if (!recording && fits && is_exclusive(grad)) {
    grad.impl()->base.reset();
    meta.grad = std::move(grad);
  } else {
    meta.grad = copy_for(*leaf_, grad);
  }
  return {};
}

void set_grad_destination(const Tensor& leaf, const Tensor& destination) {
  LS_CHECK(leaf.requires_grad() && leaf.is_leaf(), AutogradError,
           "[set_grad_destination] expected a leaf that requires grad, got {}. Call "
           "set_requires_grad() on a parameter first.",
           to_string(leaf));
  if (destination.defined()) {
    LS_CHECK(same(leaf.sizes(), destination.sizes()), ShapeError,
             "[set_grad_destination] shapes differ: expected {}, got {}.", leaf.shape(),
             destination.shape());
    LS_CHECK(leaf.dtype() == destination.dtype(), DTypeError,
             "[set_grad_destination] dtypes differ: expected {}, got {}.", to_string(leaf.dtype()),
             to_string(destination.dtype()));
    LS_CHECK(leaf.device() == destination.device(), DeviceError,
             "[set_grad_destination] devices differ: expected {}, got {}.",
             to_string(leaf.device()), to_string(destination.device()));
  }
  meta_of(*leaf.impl()).destination = destination;
}

}  // namespace lockstep
