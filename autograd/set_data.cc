#include "autograd/set_data.h"

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/base/check.h"

namespace lockstep {

void check_set_data(const Tensor& leaf, DType dtype) {
  const TensorImpl& impl = *leaf.impl();
  LS_CHECK(leaf.is_leaf() && !impl.base && !impl.batch, AutogradError,
           "[set_data] expected a leaf with memory of its own, got a computed tensor, a view or a "
           "sample of a batch: {}. Use to().",
           to_string(leaf));
  LS_CHECK(!leaf.requires_grad() || is_floating(dtype), AutogradError,
           "[set_data] {} requires grad: expected floating elements, got {}.", to_string(leaf),
           to_string(dtype));
  const Meta* const meta = find_meta(leaf);
  const bool hooked = meta != nullptr && meta->accumulator && meta->accumulator->hooks() != nullptr;
  LS_CHECK(meta == nullptr || (!hooked && !meta->destination.defined()), AutogradError,
           "[set_data] {} has hooks or a place for its gradient: expected neither. Move it before "
           "they are added.",
           to_string(leaf));
}

void set_data(const Tensor& leaf, const Tensor& source) {
  check_set_data(leaf, source.dtype());
  if (leaf.is_same(source)) return;
  TensorImpl& impl = *leaf.impl();
  const TensorImpl& from = *source.impl();
  const uint32_t next = impl.version() + 1;
  impl.keys = (impl.keys - KeySet::backends()) | (from.keys & KeySet::backends());
  impl.storage = from.storage;
  impl.version_offset = next - impl.storage->version();
  impl.sizes = from.sizes;
  impl.strides = from.strides;
  impl.offset = from.offset;
  impl.dtype = from.dtype;
  impl.inference = from.inference;
  impl.refresh();
  Meta* const meta = find_meta(leaf);
  if (meta == nullptr) return;
  meta->prepared_cast = {};
  if (meta->grad.defined()) {
    const NoGradGuard no_grad;
    meta->grad = meta->grad.detach().to(source.options());
  }
  if (!meta->accumulator) return;
  // It knows the old dtype and device.
  meta->accumulator->forget_leaf();
  meta->accumulator.reset();
  gradient_edge(leaf);
}

}  // namespace lockstep
