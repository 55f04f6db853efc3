// Norms and condition numbers of matrices; declared in matrix_functions.h.

#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/linalg/factorize.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/linalg/matrix_functions.h"
#include "core/ops/linalg/solve.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

using MaybeDType = std::optional<DType>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The argument in the dtype to compute in, checked, and its two dimensions.
struct Matrices {
  Matrices(const Tensor& self, IntList dim, MaybeDType dtype) : tensor(self) {
    rules::require_matrices("linalg_matrix_norm", self);
    LS_CHECK(dim.size() == 2, ShapeError, "[linalg_matrix_norm] expected two dimensions, got {}.",
             to_string(dim));
    rows = wrap_dim("linalg_matrix_norm", dim[0], self.dim());
    columns = wrap_dim("linalg_matrix_norm", dim[1], self.dim());
    LS_CHECK(rows != columns, ShapeError,
             "[linalg_matrix_norm] expected two different dimensions, got {}.", to_string(dim));
    if (!dtype) return;
    LS_CHECK(is_floating(*dtype), DTypeError,
             "[linalg_matrix_norm] expected a floating dtype, got {}.", to_string(*dtype));
    tensor = self.to(*dtype);
  }

  /// Applies `reduce` to the singular values along the last dimension.
  template <class Reduce>
  Tensor reduce_singular_values(bool keepdim, const Reduce& reduce) const {
    Dims order;
    for (int64_t i = 0; i < tensor.dim(); ++i) {
      if (i != rows && i != columns) order.push_back(i);
    }
    order.push_back(rows);
    order.push_back(columns);
    const Tensor result = reduce(linalg_svdvals(tensor.permute(order)));
    return keepdim ? with_dims(result) : result;
  }

  /// Puts dimensions of size 1 where the reduced ones were.
  Tensor with_dims(const Tensor& result) const {
    return result.unsqueeze(std::min(rows, columns)).unsqueeze(std::max(rows, columns));
  }

  Tensor tensor;
  int64_t rows, columns;
};

Tensor norm_of_order(const Tensor& self, Scalar ord, IntList dim, bool keepdim, MaybeDType dtype) {
  const double order = ord.to_double();
  const double size = std::fabs(order);
  LS_CHECK(size == 1 || size == 2 || size == kInfinity, Error,
           "[linalg_matrix_norm] expected an order of 1, 2 or inf, or the negative of one, got {}.",
           order);
  const Matrices matrices(self, dim, dtype);
  const auto extreme = [&](const Tensor& values, int64_t along, bool keep) {
    return order > 0 ? amax(values, {along}, keep) : amin(values, {along}, keep);
  };
  if (size == 2) {
    return matrices.reduce_singular_values(
        keepdim, [&](const Tensor& values) { return extreme(values, -1, false); });
  }
  const int64_t summed = size == 1 ? matrices.rows : matrices.columns;
  const int64_t compared = size == 1 ? matrices.columns : matrices.rows;
  const Tensor sums = linalg_vector_norm(matrices.tensor, 1, {summed}, true);
  const Tensor result = extreme(sums, compared, true);
  return keepdim ? result
                 : result.squeeze(std::max(summed, compared)).squeeze(std::min(summed, compared));
}

Tensor norm_by_name(const Tensor& self, std::string_view ord, IntList dim, bool keepdim,
                    MaybeDType dtype) {
  LS_CHECK(ord == "fro" || ord == "nuc", Error,
           "[linalg_matrix_norm] expected an order of \"fro\" or \"nuc\", got \"{}\".", ord);
  const Matrices matrices(self, dim, dtype);
  if (ord == "fro") {
    return linalg_vector_norm(matrices.tensor, 2, {matrices.rows, matrices.columns}, keepdim);
  }
  return matrices.reduce_singular_values(keepdim,
                                         [](const Tensor& values) { return sum(values, {-1}); });
}

/// norm(self) * norm(inverse), where the inverse of a singular matrix is infinite.
template <class Order>
Tensor condition(const Tensor& self, const Order& ord) {
  rules::require_square("linalg_cond", self);
  const auto [inverse, info] = linalg_inv_ex(self);
  const Tensor singular = gt(info, 0).unsqueeze(-1).unsqueeze(-1);
  return linalg_matrix_norm(self, ord) *
         linalg_matrix_norm(masked_fill(inverse, singular, kInfinity), ord);
}

/// NumPy has no condition number for these; ATen gives 0.
Tensor condition_of_nothing(const Tensor& self) {
  return zeros(rules::batch_sizes(self), self.options());
}

}  // namespace

LS_OP(linalg_matrix_norm, Tensor(const Tensor&, Scalar, IntList, bool, MaybeDType),
      "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, "
      "ScalarType? dtype=None) -> Tensor")
    .doc("Norms of matrices induced by vector norms.")
    .autocast(Autocast::kF32)
    .composite(norm_of_order);
Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntList dim, bool keepdim,
                          std::optional<DType> dtype) {
  return op_linalg_matrix_norm(self, ord, dim, keepdim, dtype);
}

LS_OP(linalg_matrix_norm_out,
      const Tensor&(const Tensor&, Scalar, IntList, bool, MaybeDType, const Tensor&),
      "linalg_matrix_norm.out(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, "
      "ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_matrix_norm, written into out.")
    .composite([](const Tensor& self, Scalar ord, IntList dim, bool keepdim, MaybeDType dtype,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_matrix_norm(self, ord, dim, keepdim, dtype));
    });

LS_OP(linalg_matrix_norm_by_name,
      Tensor(const Tensor&, std::string_view, IntList, bool, MaybeDType),
      "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2,-1], bool "
      "keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .doc("Frobenius and nuclear norms of matrices.")
    .autocast(Autocast::kF32)
    .composite(norm_by_name);
Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord, IntList dim, bool keepdim,
                          std::optional<DType> dtype) {
  return op_linalg_matrix_norm_by_name(self, ord, dim, keepdim, dtype);
}

LS_OP(linalg_matrix_norm_by_name_out,
      const Tensor&(const Tensor&, std::string_view, IntList, bool, MaybeDType, const Tensor&),
      "linalg_matrix_norm.str_ord_out(Tensor self, str ord=\"fro\", int[] dim=[-2,-1], bool "
      "keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_matrix_norm.str_ord, written into out.")
    .composite([](const Tensor& self, std::string_view ord, IntList dim, bool keepdim,
                  MaybeDType dtype, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_matrix_norm_by_name(self, ord, dim, keepdim, dtype));
    });

LS_OP(linalg_cond, Tensor(const Tensor&, std::optional<Scalar>),
      "linalg_cond(Tensor self, Scalar? p=None) -> Tensor")
    .doc("Condition numbers of matrices.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, std::optional<Scalar> p) {
      rules::require_matrices("linalg_cond", self);
      const double order = p.value_or(2).to_double();
      const double size = std::fabs(order);
      LS_CHECK(size == 1 || size == 2 || size == kInfinity, Error,
               "[linalg_cond] expected an order of 1, 2 or inf, or the negative of one, got {}.",
               order);
      if (self.numel() == 0) return condition_of_nothing(self);
      if (size != 2) return condition(self, Scalar(order));
      const Tensor values = linalg_svdvals(self);
      const Tensor largest = values.select(-1, 0), least = values.select(-1, -1);
      return order > 0 ? largest / least : least / largest;
    });
Tensor linalg_cond(const Tensor& self, std::optional<Scalar> p) { return op_linalg_cond(self, p); }

LS_OP(linalg_cond_out, const Tensor&(const Tensor&, std::optional<Scalar>, const Tensor&),
      "linalg_cond.out(Tensor self, Scalar? p=None, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_cond, written into out.")
    .composite([](const Tensor& self, std::optional<Scalar> p, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_cond(self, p));
    });

LS_OP(linalg_cond_by_name, Tensor(const Tensor&, std::string_view),
      "linalg_cond.p_str(Tensor self, str p) -> Tensor")
    .doc("Condition numbers of matrices by their Frobenius or nuclear norms.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, std::string_view p) {
      rules::require_square("linalg_cond", self);
      LS_CHECK(p == "fro" || p == "nuc", Error,
               "[linalg_cond] expected an order of \"fro\" or \"nuc\", got \"{}\".", p);
      if (self.numel() == 0) return condition_of_nothing(self);
      return condition(self, p);
    });
Tensor linalg_cond(const Tensor& self, std::string_view p) {
  return op_linalg_cond_by_name(self, p);
}

LS_OP(linalg_cond_by_name_out, const Tensor&(const Tensor&, std::string_view, const Tensor&),
      "linalg_cond.p_str_out(Tensor self, str p, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_cond.p_str, written into out.")
    .composite([](const Tensor& self, std::string_view p, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_cond_by_name(self, p));
    });

}  // namespace lockstep
