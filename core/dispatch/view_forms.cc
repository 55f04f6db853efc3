#include "core/dispatch/view_forms.h"

#include "core/base/check.h"

namespace lockstep {

void set_geometry(const Operator& op, const Tensor& self, const ViewSpec& spec) {
  TensorImpl& impl = *self.impl();
  LS_CHECK(!impl.inference || detail::inference_mode, AutogradError,
           "[{}] a tensor made in inference mode is changed outside it: {}. clone() it first.",
           op.name(), to_string(self));
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
