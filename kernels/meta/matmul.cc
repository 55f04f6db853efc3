#include "core/check.h"
#include "core/ops/matmul_rules.h"

namespace lockstep::rules {

Outputs mm(const Tensor& self, const Tensor& mat2) {
  LS_CHECK(self.dim() == 2 && mat2.dim() == 2, ShapeError,
           "[mm] expected two matrices, got shapes {} and {}.", self.shape(), mat2.shape());
  LS_CHECK(self.size(1) == mat2.size(0), ShapeError,
           "[mm] inner sizes differ: {} and {}. Did you mean mat2.t()?", self.shape(), mat2.shape());
  LS_CHECK(self.dtype() == mat2.dtype(), DTypeError,
           "[mm] dtypes differ: expected {}, got {}. Cast one with to(dtype).",
           to_string(self.dtype()), to_string(mat2.dtype()));
  return one({self.size(0), mat2.size(1)}, self.dtype());
}

}  // namespace lockstep::rules
