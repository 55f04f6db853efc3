#include "core/ops/linalg/matrix_checks.h"

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/view.h"

namespace lockstep {

Tensor transposed(const Tensor& matrices) { return matrices.transpose(-2, -1); }

Tensor identity(int64_t n, TensorOptions options) { return diag_embed(ones({n}, options)); }

Tensor added(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

bool may_need_gradient(const Tensor& self) {
  return self.requires_grad() || self.key_set().has(Key::kVmap);
}

namespace rules {

IntList batch_sizes(const Tensor& matrices) {
  return matrices.sizes().first(static_cast<size_t>(matrices.dim() - 2));
}

Dims matrix_sizes(IntList batch, int64_t rows, int64_t columns) {
  Dims sizes = to_dims(batch);
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}

void require_matrices(std::string_view op, const Tensor& tensor) {
  LS_CHECK(tensor.dim() >= 2, ShapeError,
           "[{}] expected matrices (at least two dimensions), got shape {}.", op, tensor.shape());
  LS_CHECK(is_floating(tensor.dtype()), DTypeError,
           "[{}] expected a floating dtype, got {}. Cast it with to(dtype).", op,
           to_string(tensor));
}

void require_square(std::string_view op, const Tensor& tensor) {
  require_matrices(op, tensor);
  LS_CHECK(tensor.size(-2) == tensor.size(-1), ShapeError,
           "[{}] expected square matrices, got shape {}.", op, tensor.shape());
}

void require_one_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  LS_CHECK(a.dtype() == b.dtype(), DTypeError,
           "[{}] expected one dtype, got {} and {}. Cast one of them with to(dtype).", op,
           to_string(a.dtype()), to_string(b.dtype()));
}

void require_system(std::string_view op, const Tensor& a, const Tensor& b, bool left) {
  require_square(op, a);
  require_matrices(op, b);
  require_one_dtype(op, a, b);
  LS_CHECK(
      a.size(-1) == b.size(left ? -2 : -1), ShapeError,
      "[{}] sizes of the equations differ: expected matrices with {} {}, got shapes {} and {}.", op,
      a.size(-1), left ? "rows" : "columns", a.shape(), b.shape());
}

}  // namespace rules

}  // namespace lockstep
