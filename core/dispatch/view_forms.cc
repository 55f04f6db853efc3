#include "core/dispatch/view_forms.h"

#include "core/base/check.h"
#include "core/tensor/inference_tensor.h"

namespace lockstep {

void set_geometry(const Operator& op, const Tensor& self, const ViewSpec& spec) {
  TensorImpl& impl = *self.impl();
  check_inference_write(op.name(), self);
  if (impl.sizes == spec.sizes && impl.strides == spec.strides && impl.offset == spec.offset) {
    return;  // nobody who kept the tensor has to know
  }
  impl.sizes = spec.sizes;
  impl.strides = spec.strides;
  impl.offset = spec.offset;
  impl.refresh();
  impl.storage->bump_version();
}

}  // namespace lockstep
