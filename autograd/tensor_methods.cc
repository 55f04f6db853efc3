// The autograd methods of Tensor, declared in core/tensor/tensor.h, except hooks (hooks.cc).

#include "autograd/autograd.h"
#include "autograd/meta.h"
#include "core/base/check.h"

namespace lockstep {

const Tensor& Tensor::set_requires_grad(bool requires_grad) const {
  TensorImpl& impl = checked();
  if (requires_grad) {
    LS_CHECK(is_floating(impl.dtype), AutogradError,
             "[set_requires_grad] only floating-point tensors have gradients: got {}. Cast with "
             "to(dtype) first.",
             to_string(*this));
    LS_CHECK(!impl.batch, AutogradError,
             "[set_requires_grad] one sample of a batch cannot require grad by itself: {}. Inside "
             "vmap use grad(f), or mark the whole batch outside.",
             to_string(*this));
    LS_CHECK(!impl.inference || detail::inference_mode, AutogradError,
             "[set_requires_grad] a tensor made in inference mode cannot require grad: {}. clone() "
             "it outside that mode first.",
             to_string(*this));
    impl.keys |= Key::kAutograd;
    if (is_leaf()) gradient_edge(*this);  // makes the accumulator before threads share the leaf
    return *this;
  }
  LS_CHECK(is_leaf(), AutogradError,
           "[set_requires_grad] a computed tensor cannot stop requiring grad: {}. Use detach().",
           to_string(*this));
  impl.keys = impl.keys - Key::kAutograd;
  return *this;
}

bool Tensor::is_leaf() const {
  checked();
  const Meta* meta = find_meta(*this);
  return meta == nullptr || !meta->grad_fn;
}

const Tensor& Tensor::grad() const {
  static const Tensor kNone;
  checked();
  const Meta* meta = find_meta(*this);
  return meta != nullptr ? meta->grad : kNone;
}

void Tensor::set_grad(const Tensor& grad) const {
  TensorImpl& impl = checked();
  if (grad.defined()) {
    LS_CHECK(same(grad.sizes(), impl.sizes), ShapeError,
             "[set_grad] the gradient has the wrong shape: expected {}, got {}.", shape(),
             grad.shape());
    LS_CHECK(grad.dtype() == impl.dtype, DTypeError,
             "[set_grad] the gradient has the wrong dtype: expected {}, got {}.",
             to_string(impl.dtype), to_string(grad.dtype()));
    LS_CHECK(grad.device() == device(), DeviceError,
             "[set_grad] the gradient is on the wrong device: expected {}, got {}.",
             to_string(device()), to_string(grad.device()));
  } else if (find_meta(*this) == nullptr) {
    return;
  }
  meta_of(impl).grad = grad;
}

Node* Tensor::grad_fn() const {
  if (!requires_grad() || is_leaf()) return nullptr;
  return gradient_edge(*this).node.get();  // kept alive by this tensor
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  BackwardOptions options;
  options.retain_graph = retain_graph;
  options.create_graph = create_graph;
  lockstep::backward({this, 1}, {&gradient, 1}, options);
}

}  // namespace lockstep
