#include "core/ops/index/index_checks.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::rules {

namespace {

/// Size of a dimension; a 0-d tensor counts as one element along dimension 0.
int64_t size_at(const Tensor& tensor, int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.sizes()[dim];
}

}  // namespace

void check_index(std::string_view op, const Tensor& index) {
  LS_CHECK(index.dtype() == DType::kI64 || index.dtype() == DType::kI32, DTypeError,
           "[{}] an index must be int64 or int32, got {}. Cast it with to(DType::kI64).", op,
           to_string(index.dtype()));
}

void check_places(std::string_view op, const Tensor& index) {
  if (index.numel() > 0) check_index(op, index);
}

void check_same_dtype(std::string_view op, const Tensor& self, const Tensor& source) {
  LS_CHECK(self.dtype() == source.dtype(), DTypeError,
           "[{}] dtypes differ: expected {}, got {}. Cast one with to(dtype).", op,
           to_string(self.dtype()), to_string(source.dtype()));
}

void check_covers(std::string_view op, std::string_view what, const Tensor& tensor,
                  const Tensor& index, int64_t except) {
  bool fits = std::max<int64_t>(tensor.dim(), 1) == std::max<int64_t>(index.dim(), 1);
  for (int64_t i = 0; fits && i < index.dim(); ++i) {
    fits = i == except || index.sizes()[i] <= size_at(tensor, i);
  }
  LS_CHECK(fits || index.numel() == 0, ShapeError,
           "[{}] the index is larger than {}{}: expected a shape inside {}, got {}.", op, what,
           except >= 0 ? " outside dim" : "", tensor.shape(), index.shape());
}

}  // namespace lockstep::rules
