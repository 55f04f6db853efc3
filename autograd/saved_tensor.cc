#include "autograd/saved_tensor.h"

#include "autograd/copy_slices.h"
#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "autograd/ownership.h"
#include "core/base/check.h"

namespace lockstep {

namespace {

/// The elements of `impl` as a new tensor without history.
Ref<TensorImpl> alias_of(const TensorImpl& impl) {
  return make_ref<TensorImpl>(impl.storage, impl.sizes, impl.strides, impl.offset, impl.dtype);
}

/// Another tensor over the elements of `impl`, with the edge's node as history.
Tensor with_history(const TensorImpl& impl, Edge edge) {
  Tensor restored(alias_of(impl));
  set_history(*restored.impl(), std::move(edge.node), edge.input_nr);
  return restored;
}

}  // namespace

SavedTensor SavedTensor::argument(const Tensor& tensor) {
  SavedTensor saved;
  if (!tensor.defined()) return saved;
  LS_CHECK(!tensor.is_inference(), AutogradError,
           "[saved_tensor] a tensor made in inference mode cannot be saved for a backward: {}. "
           "clone() it outside that mode first.",
           to_string(tensor));
  if (detail::saved_tensor_hooks != nullptr) [[unlikely]] {
    saved.pack(tensor.requires_grad() ? without_history(tensor).peek() : tensor);
    saved.packed_->edge = gradient_edge(tensor);
    return saved;
  }
  saved.impl_ = Ref<TensorImpl>::share(tensor.impl());
  saved.version_ = tensor.version();
  return saved;
}

SavedTensor SavedTensor::without_history(const Tensor& tensor) {
  SavedTensor saved;
  saved.impl_ = alias_of(*tensor.impl());
  saved.version_ = saved.impl_->version();
  return saved;
}

SavedTensor SavedTensor::overwritten(const Tensor& tensor) { return without_history(tensor); }

SavedTensor SavedTensor::result(const Tensor& tensor, uint32_t output_nr) {
  if (!tensor.defined()) return {};
  SavedTensor saved = without_history(tensor);
  saved.output_nr_ = output_nr;
  saved.is_result_ = true;
  saved.has_history_ = tensor.requires_grad();
  if (detail::saved_tensor_hooks != nullptr) [[unlikely]] {
    saved.pack(Tensor(std::exchange(saved.impl_, {})));
  }
  return saved;
}

void SavedTensor::pack(const Tensor& tensor) { packed_ = std::make_unique<PackedTensor>(tensor); }

Tensor SavedTensor::unpack_packed(std::string_view op, Node* owner) const {
  const Tensor tensor = packed_->unpack(op);
  if (!is_grad_enabled()) return tensor;
  // Restores the history that the tensor had, also if the hook returned another tensor.
  if (has_history_) return with_history(*tensor.impl(), {Ref<Node>::share(owner), output_nr_});
  if (!packed_->edge) return tensor;
  const bool of_a_leaf = packed_->edge.node->next_edges().empty();
  if (!of_a_leaf) return with_history(*tensor.impl(), packed_->edge);
  // Only one tensor can be the leaf, so the unpacked one becomes a view of it.
  return with_history(*tensor.impl(),
                      {as_strided_node(packed_->edge, *tensor.impl(), *tensor.impl()), 0});
}

Tensor SavedTensor::unpack(std::string_view op, Node* owner) const {
  if (packed_) return unpack_packed(op, owner);
  if (!impl_) return {};
  const uint32_t found = impl_->version();
  LS_CHECK(found == version_, AutogradError,
           "[{}] a tensor needed for its gradient was changed in place after it was used: {}{}, {} "
           "of {}, expected at version {}, got version {}. Change a clone() instead, or use the "
           "form of the later operator that returns a new tensor.",
           op, to_string(impl_->dtype), to_string(impl_->sizes),
           is_result_ ? "a result" : "an argument", op, version_, found);
  if (!has_history_ || !is_grad_enabled()) return Tensor(impl_);
  return with_history(*impl_, {Ref<Node>::share(owner), output_nr_});
}

Tensor SavedTensor::take(const Tensor& unpacked) {
  if (!impl_ || impl_.get() != unpacked.impl()) return {};
  constexpr uint32_t kHandles = 2;  // impl_ and unpacked
  const Storage& storage = *impl_->storage;
  const bool free = is_exclusive(unpacked, kHandles) && storage.owns_memory() &&
                    !storage.is_recorded() && is_dense(impl_->sizes, impl_->strides);
  if (!free) return {};
  impl_.reset();
  return Tensor(alias_of(*unpacked.impl()));
}

}  // namespace lockstep
