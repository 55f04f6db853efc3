#include "core/ops/reduce/calculus.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

void refuse_bool(std::string_view op, const Tensor& tensor) {
  LS_CHECK(tensor.dtype() != DType::kBool, DTypeError,
           "[{}] bools are not accepted: expected numbers. Cast them with to(dtype).", op);
}

int64_t checked_dim(std::string_view op, const Tensor& y, int64_t dim) {
  LS_CHECK(y.dim() > 0, IndexError, "[{}] expected at least one dimension, got none.", op);
  return wrap_dim(op, dim, y.dim());
}

double spacing_of(std::string_view op, const Scalar& dx) {
  LS_CHECK(dx.kind() != DType::kBool, DTypeError, "[{}] expected a number for dx, got a bool.", op);
  return dx.to_double();
}

Tensor all_but_last(const Tensor& tensor, int64_t dim) { return tensor.slice(dim, 0, -1); }
Tensor all_but_first(const Tensor& tensor, int64_t dim) {
  return tensor.slice(dim, 1, std::nullopt);
}
/// The sums of neighbours along `dim`.
Tensor pairs(const Tensor& y, int64_t dim) { return all_but_last(y, dim) + all_but_first(y, dim); }

/// The distances of the points x, with as many dimensions as y at least.
Tensor distances(std::string_view op, const Tensor& y, const Tensor& x, int64_t dim) {
  Tensor points = x;
  if (x.dim() == 1) {
    LS_CHECK(x.size(0) == y.size(dim), ShapeError,
             "[{}] expected a point for each of {} values along dimension {}, got {}.", op,
             y.size(dim), dim, x.size(0));
    Dims sizes(static_cast<size_t>(y.dim()), 1);
    sizes[static_cast<size_t>(dim)] = x.size(0);
    points = x.reshape(sizes);
  } else if (x.dim() < y.dim()) {
    Dims sizes(static_cast<size_t>(y.dim() - x.dim()), 1);
    for (const int64_t size : x.sizes()) sizes.push_back(size);
    points = x.reshape(sizes);
  }
  return all_but_first(points, dim) - all_but_last(points, dim);
}

/// Zeros of y's dtype without the dimension: the integral over no points.
Tensor no_area(const Tensor& y, int64_t dim) {
  Dims sizes = to_dims(y.sizes());
  sizes.erase(static_cast<size_t>(dim));
  return zeros(sizes, y.options());
}

/// The slope along `d`: central differences, and one-sided ones of the given order at the ends.
Tensor slope(const Tensor& self, const Scalar& spacing, int64_t d, int64_t edge_order) {
  const int64_t size = self.size(d);
  const auto at = [&](int64_t i) { return self.slice(d, i, i + 1); };
  const Tensor centre = (self.slice(d, 2, std::nullopt) - self.slice(d, 0, size - 2)) / spacing / 2;
  if (edge_order == 1) {
    return cat({(at(1) - at(0)) / spacing, centre, (at(size - 1) - at(size - 2)) / spacing}, d);
  }
  return cat({(at(0) * -1.5 + at(1) * 2 - at(2) * 0.5) / spacing, centre,
              (at(size - 1) * 1.5 - at(size - 2) * 2 + at(size - 3) * 0.5) / spacing},
             d);
}

std::vector<Tensor> slopes(const Tensor& self, const Scalar& spacing, IntList dims,
                           int64_t edge_order) {
  LS_CHECK(self.dtype() != DType::kU8 && self.dtype() != DType::kBool, DTypeError,
           "[gradient] expected numbers with a sign, got {}. Cast them with to(dtype).",
           to_string(self.dtype()));
  LS_CHECK(edge_order == 1 || edge_order == 2, Error,
           "[gradient] expected an edge_order of 1 or 2, got {}.", edge_order);
  dim_mask("gradient", dims, self.dim());  // throws if a dimension is given twice
  std::vector<Tensor> results;
  for (const int64_t dim : dims) {
    const int64_t d = wrap_dim("gradient", dim, self.dim());
    LS_CHECK(self.dim() > 0 && self.size(d) > edge_order, ShapeError,
             "[gradient] expected at least {} elements along dimension {}, got shape {}.",
             edge_order + 1, d, self.shape());
    results.push_back(slope(self, spacing, d, edge_order));
  }
  return results;
}

Dims every_dim(const Tensor& self) {
  Dims dims;
  for (int64_t i = 0; i < self.dim(); ++i) dims.push_back(i);
  return dims;
}

}  // namespace

LS_OP(trapezoid, Tensor(const Tensor&, Scalar, int64_t),
      "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
    .doc("The integral of values dx apart along a dimension, by the trapezoidal rule.")
    .composite([](const Tensor& y, Scalar dx, int64_t dim) {
      const int64_t d = checked_dim("trapezoid", y, dim);
      if (y.size(d) == 0) return no_area(y, d);
      refuse_bool("trapezoid", y);
      const double spacing = spacing_of("trapezoid", dx);
      return (sum(y, {d}) - (y.select(d, 0) + y.select(d, y.size(d) - 1)) * 0.5) * spacing;
    });
Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  return op_trapezoid(y, dx, dim);
}
LS_OP(trapezoid_of_points, Tensor(const Tensor&, const Tensor&, int64_t),
      "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
    .doc("The integral of values at the points x along a dimension, by the trapezoidal rule.")
    .composite([](const Tensor& y, const Tensor& x, int64_t dim) {
      const int64_t d = checked_dim("trapezoid", y, dim);
      if (y.size(d) == 0) return no_area(y, d);
      refuse_bool("trapezoid", y);
      refuse_bool("trapezoid", x);
      return sum(pairs(y, d) * distances("trapezoid", y, x, d), {d}) / 2.0;
    });
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  return op_trapezoid_of_points(y, x, dim);
}

LS_OP(cumulative_trapezoid, Tensor(const Tensor&, Scalar, int64_t),
      "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
    .doc("The integrals from the first to each further value along a dimension, dx apart.")
    .composite([](const Tensor& y, Scalar dx, int64_t dim) {
      const int64_t d = checked_dim("cumulative_trapezoid", y, dim);
      refuse_bool("cumulative_trapezoid", y);
      return cumsum(pairs(y, d) * (spacing_of("cumulative_trapezoid", dx) / 2), d);
    });
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  return op_cumulative_trapezoid(y, dx, dim);
}
LS_OP(cumulative_trapezoid_of_points, Tensor(const Tensor&, const Tensor&, int64_t),
      "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
    .doc("The integrals from the first to each further value along a dimension, at the points x.")
    .composite([](const Tensor& y, const Tensor& x, int64_t dim) {
      const int64_t d = checked_dim("cumulative_trapezoid", y, dim);
      refuse_bool("cumulative_trapezoid", y);
      refuse_bool("cumulative_trapezoid", x);
      return cumsum(pairs(y, d) * (distances("cumulative_trapezoid", y, x, d) / 2.0), d);
    });
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  return op_cumulative_trapezoid_of_points(y, x, dim);
}

LS_OP(gradient,
      std::vector<Tensor>(const Tensor&, std::optional<Scalar>, std::optional<int64_t>, int64_t),
      "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) "
      "-> Tensor[]")
    .doc("The slopes of values `spacing` apart along a dimension, or along each.")
    .composite([](const Tensor& self, std::optional<Scalar> spacing, std::optional<int64_t> dim,
                  int64_t edge_order) {
      return slopes(self, spacing.value_or(1), dim ? Dims{*dim} : every_dim(self), edge_order);
    });
LS_OP(gradient_of_dims, std::vector<Tensor>(const Tensor&, Scalar, IntList, int64_t),
      "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> "
      "Tensor[]")
    .doc("The slopes of values `spacing` apart along each of some dimensions.")
    .composite([](const Tensor& self, Scalar spacing, IntList dim, int64_t edge_order) {
      return slopes(self, spacing, dim, edge_order);
    });
LS_OP(gradient_of_unit_spacing, std::vector<Tensor>(const Tensor&, IntList, int64_t),
      "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]")
    .doc("The slopes of values 1 apart along each of some dimensions.")
    .composite([](const Tensor& self, IntList dim, int64_t edge_order) {
      return slopes(self, 1, dim, edge_order);
    });
std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntList dims,
                             int64_t edge_order) {
  return op_gradient_of_dims(self, spacing, dims, edge_order);
}

}  // namespace lockstep
