#include "core/ops/matmul/distance.h"

#include <cmath>
#include <optional>
#include <vector>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

void check_norm(std::string_view op, double p) {
  LS_CHECK(p >= 0, ShapeError, "[{}] p must not be negative, got {}.", op, p);
}

Outputs cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  LS_CHECK(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1), ShapeError,
           "[cdist] expected matrices with rows of one length, got shapes {} and {}.", x1.shape(),
           x2.shape());
  LS_CHECK(is_floating(x1.dtype()) && x1.dtype() == x2.dtype(), DTypeError,
           "[cdist] expected one floating dtype, got {} and {}. Cast with to(dtype).",
           to_string(x1.dtype()), to_string(x2.dtype()));
  check_norm("cdist", p);
  const int64_t mode = compute_mode.value_or(0);
  LS_CHECK(mode >= 0 && mode <= 2, ShapeError, "[cdist] expected a compute_mode in [0, 2], got {}.",
           mode);
  Dims sizes = broadcast("cdist", x1.sizes().first(static_cast<size_t>(x1.dim() - 2)),
                         x2.sizes().first(static_cast<size_t>(x2.dim() - 2)));
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  return one(std::move(sizes), x1.dtype());
}

Outputs pdist(const Tensor& self, double p) {
  LS_CHECK(self.dim() == 2, ShapeError, "[pdist] expected a matrix, got shape {}.", self.shape());
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[pdist] expected a floating dtype, got {}. Cast it with to(dtype).", to_string(self));
  check_norm("pdist", p);
  const int64_t n = self.size(0);
  return one({n * (n - 1) / 2}, self.dtype());
}

}  // namespace
}  // namespace rules

namespace {

/// The gradient of `difference`, given the gradient `grad` of its p-norm `distance`; both have size
/// 1 in the dimension of the norm.
Tensor difference_gradient(const Tensor& grad, const Tensor& difference, const Tensor& distance,
                           double p) {
  if (p == 0) return zeros_like(difference);
  if (p == 1) return grad * sign(difference);
  if (std::isinf(p)) {
    const Tensor largest = eq(abs(difference), distance).to(grad.dtype());
    return grad * (sign(difference) * largest);
  }
  const Tensor none = eq(distance, 0);
  const Tensor safe = masked_fill(distance, none, 1);
  if (p == 2) return grad * (difference / safe);
  const Tensor size = abs(difference);
  const Tensor slope = p < 1 ? pow(masked_fill(size, eq(size, 0), 1), p - 1) : pow(size, p - 1);
  return masked_fill(grad / pow(safe, p - 1), none, 0) * (sign(difference) * slope);
}

/// max(norm, eps), with the gradient of the norm.
Tensor bounded_norm(const Tensor& x, int64_t dim, double eps) {
  const Tensor norm = linalg_vector_norm(x, 2, {dim}, true).clone();
  const ExcludeKeys no_autograd{KeySet(Key::kAutograd)};
  masked_fill_(norm, lt(norm, eps), eps);
  return norm;
}

/// The indices i and j of all pairs i < j of n rows, in order.
std::pair<Tensor, Tensor> pair_rows(int64_t n, Device device) {
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  }
  const int64_t count = static_cast<int64_t>(first.size());
  return {tensor_from(first, {count}).to(device), tensor_from(second, {count}).to(device)};
}

}  // namespace

LS_OP(cosine_similarity, Tensor(const Tensor&, const Tensor&, int64_t, double),
      "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
    .doc("Cosine of the angle between vectors along a dimension.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
      const DType dtype = result_type(x1, x2);
      LS_CHECK(is_floating(dtype), DTypeError,
               "[cosine_similarity] expected floating tensors, got {} and {}. Cast with to(dtype).",
               to_string(x1), to_string(x2));
      const Dims sizes = broadcast("cosine_similarity", x1.sizes(), x2.sizes());
      const Tensor a = to(x1, dtype).expand(sizes);
      const Tensor b = to(x2, dtype).expand(sizes);
      return sum((a / bounded_norm(a, dim, eps)) * (b / bounded_norm(b, dim, eps)), {dim});
    });
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  return op_cosine_similarity(x1, x2, dim, eps);
}

LS_OP(cdist_forward, Tensor(const Tensor&, const Tensor&, double, std::optional<int64_t>),
      "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor")
    .doc("Distances between the rows of two (batches of) matrices.")
    .structured(rules::cdist)
    .out()
    .autocast(Autocast::kF32)
    .saves({"x1", "x2", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const double p = ctx.argument<double>(2);
      const Tensor& x1 = ctx.saved(0);
      const Tensor& x2 = ctx.saved(1);
      const Tensor& result = ctx.saved(2);
      return ctx.gradients([&] { return cdist_backward(grad, x1, x2, p, result); },
                           [&] {
                             return cdist_backward(grad.transpose(-1, -2), x2, x1, p,
                                                   result.transpose(-1, -2));
                           });
    });

LS_OP(cdist, Tensor(const Tensor&, const Tensor&, double, std::optional<int64_t>),
      "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor")
    .doc("Distances between the rows of two (batches of) matrices.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
      return op_cdist_forward(x1, x2, p, mode);
    });
Tensor cdist(const Tensor& x1, const Tensor& x2, double p) {
  return op_cdist(x1, x2, p, std::nullopt);
}

LS_OP(cdist_backward, Tensor(const Tensor&, const Tensor&, const Tensor&, double, const Tensor&),
      "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor")
    .doc("Gradient of the first argument of _cdist_forward.")
    .composite([](const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                  const Tensor& cdist) {
      const Tensor difference = x1.unsqueeze(-2) - x2.unsqueeze(-3);
      const Tensor each =
          difference_gradient(grad.unsqueeze(-1), difference, cdist.unsqueeze(-1), p);
      return sum_to_size(sum(each, {-2}), x1.sizes());
    });
Tensor cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                      const Tensor& cdist) {
  return op_cdist_backward(grad, x1, x2, p, cdist);
}

LS_OP(cdist_backward_out,
      const Tensor&(const Tensor&, const Tensor&, const Tensor&, double, const Tensor&,
                    const Tensor&),
      "_cdist_backward.out(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist, *, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("_cdist_backward, written into out.")
    .composite([](const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                  const Tensor& cdist, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_cdist_backward(grad, x1, x2, p, cdist));
    });

LS_OP(pdist_forward, Tensor(const Tensor&, double),
      "_pdist_forward(Tensor self, float p=2.) -> Tensor")
    .doc("Distances between all pairs of rows.")
    .structured(rules::pdist)
    .out()
    .autocast(Autocast::kF32)
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return pdist_backward(grad, ctx.saved(0), ctx.argument<double>(1), ctx.saved(1));
      });
    });

LS_OP(pdist, Tensor(const Tensor&, double), "pdist(Tensor self, float p=2) -> Tensor")
    .doc("Distances between all pairs of rows.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, double p) { return op_pdist_forward(self, p); });
Tensor pdist(const Tensor& self, double p) { return op_pdist(self, p); }

LS_OP(pdist_backward, Tensor(const Tensor&, const Tensor&, double, const Tensor&),
      "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor")
    .doc("Gradient of the argument of _pdist_forward.")
    .composite([](const Tensor& grad, const Tensor& self, double p, const Tensor& pdist) {
      const auto [first, second] = pair_rows(self.size(0), self.device());
      const Tensor difference = index_select(self, 0, first) - index_select(self, 0, second);
      const Tensor each =
          difference_gradient(grad.unsqueeze(-1), difference, pdist.unsqueeze(-1), p);
      const Tensor none = zeros(self.sizes(), each.options());
      return index_add(index_add(none, 0, first, each), 0, second, each, -1);
    });
Tensor pdist_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist) {
  return op_pdist_backward(grad, self, p, pdist);
}

LS_OP(pdist_backward_out,
      const Tensor&(const Tensor&, const Tensor&, double, const Tensor&, const Tensor&),
      "_pdist_backward.out(Tensor grad, Tensor self, float p, Tensor pdist, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("_pdist_backward, written into out.")
    .composite([](const Tensor& grad, const Tensor& self, double p, const Tensor& pdist,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_pdist_backward(grad, self, p, pdist));
    });

}  // namespace lockstep
