#include "core/ops/image/with_height.h"

#include "core/base/check.h"
#include "core/ops/view/view.h"

namespace lockstep {

Dims with_height(IntList list, int64_t otherwise) {
  if (list.empty()) return {};
  return {otherwise, list[0]};
}

Tensor with_height(std::string_view op, const Tensor& self) {
  LS_CHECK(self.dim() == 2 || self.dim() == 3, ShapeError,
           "[{}] expected input [channels, length] or [batch, channels, length], got shape {}.", op,
           self.shape());
  return self.unsqueeze(-2);
}

}  // namespace lockstep
