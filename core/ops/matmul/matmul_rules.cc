#include "core/ops/matmul/matmul_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

namespace {

/// The result of a product of matrices, or of batches of them when `rank` is 3.
Outputs product(std::string_view op, int64_t rank, const Tensor& a, const Tensor& b) {
  LS_CHECK(a.dim() == rank && b.dim() == rank, ShapeError,
           "[{}] expected two tensors of {} dimensions, got shapes {} and {}.", op, rank, a.shape(),
           b.shape());
  LS_CHECK(a.size(-1) == b.size(-2), ShapeError,
           "[{}] inner sizes differ: {} and {}. Did you mean the second one's transpose?", op,
           a.shape(), b.shape());
  LS_CHECK(rank == 2 || a.size(0) == b.size(0), ShapeError,
           "[{}] batch sizes differ: {} and {}. expand() one, or use matmul.", op, a.shape(),
           b.shape());
  LS_CHECK(a.dtype() == b.dtype(), DTypeError,
           "[{}] dtypes differ: expected {}, got {}. Cast one with to(dtype).", op,
           to_string(a.dtype()), to_string(b.dtype()));
  LS_CHECK(a.dtype() != DType::kBool, DTypeError,
           "[{}] matrices of bool have no product: expected numbers. Cast with to(dtype).", op);
  return rank == 2 ? one({a.size(0), b.size(1)}, a.dtype())
                   : one({a.size(0), a.size(1), b.size(2)}, a.dtype());
}

Outputs sum_with_product(std::string_view op, int64_t rank, const Tensor& self, const Tensor& a,
                         const Tensor& b, Scalar beta, Scalar alpha) {
  Outputs outputs = product(op, rank, a, b);
  const OutputSpec& spec = outputs.specs[0];
  LS_CHECK(self.dim() <= rank && same(broadcast(op, self.sizes(), spec.sizes), spec.sizes),
           ShapeError, "[{}] self does not stretch to the product: expected {}, got {}.", op,
           to_string(spec.sizes), self.shape());
  LS_CHECK(self.dtype() == a.dtype(), DTypeError,
           "[{}] self has another dtype than the matrices: expected {}, got {}. Cast it with "
           "to(dtype).",
           op, to_string(a.dtype()), to_string(self.dtype()));
  LS_CHECK(rank == 3 || is_floating(a.dtype()) || !(beta.is_floating() || alpha.is_floating()),
           DTypeError, "[{}] integer matrices need integer beta and alpha, got {} and {}.", op,
           to_string(beta), to_string(alpha));
  return outputs;
}

}  // namespace

Outputs mm(const Tensor& self, const Tensor& mat2) { return product("mm", 2, self, mat2); }

Outputs addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta,
              Scalar alpha) {
  return sum_with_product("addmm", 2, self, mat1, mat2, beta, alpha);
}

Outputs bmm(const Tensor& self, const Tensor& mat2) { return product("bmm", 3, self, mat2); }

Outputs baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                Scalar alpha) {
  return sum_with_product("baddbmm", 3, self, batch1, batch2, beta, alpha);
}

}  // namespace lockstep::rules
