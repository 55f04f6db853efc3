#include "autograd/saved_tensor.h"

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/check.h"

namespace lockstep {

SavedTensor SavedTensor::argument(const Tensor& tensor) {
  SavedTensor saved;
  if (!tensor.defined()) return saved;
  LS_CHECK(!tensor.is_inference(), AutogradError,
           "[saved_tensor] a tensor made in inference mode cannot be saved for a backward: {}. "
           "clone() it outside that mode first.",
           to_string(tensor));
  saved.impl_ = Ref<TensorImpl>::share(tensor.impl());
  saved.version_ = tensor.version();
  return saved;
}

SavedTensor SavedTensor::without_history(const Tensor& tensor) {
  SavedTensor saved;
  const TensorImpl& impl = *tensor.impl();
  saved.impl_ =
      make_ref<TensorImpl>(impl.storage, impl.sizes, impl.strides, impl.offset, impl.dtype);
  saved.version_ = tensor.version();
  return saved;
}

SavedTensor SavedTensor::overwritten(const Tensor& tensor) { return without_history(tensor); }

SavedTensor SavedTensor::result(const Tensor& tensor, uint32_t output_nr) {
  if (!tensor.defined()) return {};
  SavedTensor saved = without_history(tensor);
  saved.output_nr_ = output_nr;
  saved.is_result_ = true;
  saved.has_history_ = tensor.requires_grad();
  return saved;
}

Tensor SavedTensor::unpack(std::string_view op, Node* owner) const {
  if (!impl_) return {};
  const uint32_t found = impl_->storage->version();
  LS_CHECK(found == version_, AutogradError,
           "[{}] a tensor needed for its gradient was changed in place after it was used: {}{}, {} "
           "of {}, expected at version {}, got version {}. Change a clone() instead, or use the "
           "form of the later operator that returns a new tensor.",
           op, to_string(impl_->dtype), to_string(impl_->sizes),
           is_result_ ? "a result" : "an argument", op, version_, found);
  if (!has_history_ || !is_grad_enabled()) return Tensor(impl_);
  Tensor restored(make_ref<TensorImpl>(impl_->storage, impl_->sizes, impl_->strides, impl_->offset,
                                       impl_->dtype));
  set_history(*restored.impl(), Ref<Node>::share(owner), output_nr_);
  return restored;
}

}  // namespace lockstep
