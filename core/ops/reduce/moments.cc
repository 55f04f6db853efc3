// Variance and standard deviation; declared in reduce.h and reduce_composite.h.

#include <limits>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/reduce_composite.h"
#include "core/ops/reduce/reduce_rules.h"
#include "core/ops/reduce/reduced_dims.h"

namespace lockstep {

namespace rules {
namespace {

Outputs deviation(const Tensor& self, std::optional<IntList> dims, std::optional<Scalar>,
                  bool keepdim) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[std/var] expected a floating dtype, got {}. Cast it with to(dtype).", to_string(self));
  return one(reduced_sizes("std/var", self, dims.value_or(IntList()), keepdim), self.dtype());
}
Outputs var_mean(const Tensor& self, std::optional<IntList> dims, std::optional<Scalar> correction,
                 bool keepdim) {
  Outputs outputs = deviation(self, dims, correction, keepdim);
  const OutputSpec mean = outputs.specs[0];
  outputs.specs.push_back(mean);
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using MaybeDims = std::optional<IntList>;

double correction_of(std::optional<Scalar> correction) {
  return correction.value_or(1).to_double();
}

/// The gradient of self, given the gradient `grad` of its variance.
Tensor variance_gradient(const Tensor& grad, const Tensor& self, MaybeDims dims_or_all,
                         std::optional<Scalar> correction, bool keepdim) {
  const IntList dims = dims_or_all.value_or(IntList());
  const double freedom = reduced_count(self.sizes(), dims) - correction_of(correction);
  const Tensor each = with_reduced_dims(grad, self.sizes(), dims, keepdim);
  const Tensor distance = self - mean(self, dims, true);
  if (!dims_or_all && freedom <= 0) {  // as in ATen: infinite, and NaN at the mean
    const Tensor slope = full({}, std::numeric_limits<double>::infinity(), self.options());
    const Tensor none = full({}, std::numeric_limits<double>::quiet_NaN(), self.options());
    return each * where(eq(distance, 0), none, slope);
  }
  return (each * (2.0 / freedom)) * distance;
}

}  // namespace

LS_OP(var_correction, Tensor(const Tensor&, MaybeDims, std::optional<Scalar>, bool),
      "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False) -> Tensor")
    .doc("Sum of squared distances from the mean, divided by max(0, count - correction).")
    .structured(rules::deviation)
    .batching(batching::reduction)
    .out("correction_out")
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return variance_gradient(grad, ctx.saved(0), ctx.argument<MaybeDims>(1),
                                 ctx.argument<std::optional<Scalar>>(2), ctx.argument<bool>(3));
      });
    });
Tensor var(const Tensor& self, IntList dims, std::optional<Scalar> correction, bool keepdim) {
  return op_var_correction(self, dims, correction, keepdim);
}

LS_OP(std_correction, Tensor(const Tensor&, MaybeDims, std::optional<Scalar>, bool),
      "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False) -> Tensor")
    .doc("The square root of var; its gradient at 0 is 0.")
    .structured(rules::deviation)
    .batching(batching::reduction)
    .out("correction_out")
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& result = ctx.saved(1);
        const Tensor zero = eq(result, 0);
        const Tensor of_variance = masked_fill(grad / (masked_fill(result, zero, 1) * 2), zero, 0);
        return variance_gradient(of_variance, ctx.saved(0), ctx.argument<MaybeDims>(1),
                                 ctx.argument<std::optional<Scalar>>(2), ctx.argument<bool>(3));
      });
    });
Tensor std(const Tensor& self, IntList dims, std::optional<Scalar> correction, bool keepdim) {
  return op_std_correction(self, dims, correction, keepdim);
}

using TwoTensors = std::tuple<Tensor, Tensor>;

LS_OP(var_mean, TwoTensors(const Tensor&, MaybeDims, std::optional<Scalar>, bool),
      "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False) -> (Tensor, Tensor)")
    .doc("Variance and mean.")
    .structured(rules::var_mean)
    .batching(batching::reduction)
    .saves({"self"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      return ctx.gradients([&] {
        const Tensor& self = ctx.saved(0);
        const MaybeDims dims = ctx.argument<MaybeDims>(1);
        const bool keepdim = ctx.argument<bool>(3);
        Tensor result;
        if (grads[0].defined()) {
          result = variance_gradient(grads[0], self, dims, ctx.argument<std::optional<Scalar>>(2),
                                     keepdim);
        }
        if (grads[1].defined()) {
          const IntList reduced = dims.value_or(IntList());
          const Tensor share =
              with_reduced_dims(grads[1], self.sizes(), reduced, keepdim).expand(self.sizes()) /
              reduced_count(self.sizes(), reduced);
          result = result.defined() ? result + share : share;
        }
        return result;
      });
    });
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, IntList dims,
                                    std::optional<Scalar> correction, bool keepdim) {
  return op_var_mean(self, dims, correction, keepdim);
}

LS_OP(var_mean_out,
      TwoTensors(const Tensor&, MaybeDims, std::optional<Scalar>, bool, const Tensor&,
                 const Tensor&),
      "var_mean.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))")
    .doc("var_mean, written into out0 and out1.")
    .composite([](const Tensor& self, MaybeDims dim, std::optional<Scalar> correction, bool keepdim,
                  const Tensor& out0, const Tensor& out1) {
      return write_results(op_var_mean(self, dim, correction, keepdim), out0, out1);
    });

LS_OP(var_mean_of_all, TwoTensors(const Tensor&, bool),
      "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
    .doc("Variance and mean of all elements.")
    .composite([](const Tensor& self, bool unbiased) {
      return op_var_mean(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
    });

LS_OP(var_mean_dim, TwoTensors(const Tensor&, MaybeDims, bool, bool),
      "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, "
      "Tensor)")
    .doc("Variance and mean over dimensions.")
    .composite([](const Tensor& self, MaybeDims dims, bool unbiased, bool keepdim) {
      return op_var_mean(self, dims, Scalar(unbiased ? 1 : 0), keepdim);
    });

LS_OP(var, Tensor(const Tensor&, bool), "var(Tensor self, bool unbiased=True) -> Tensor")
    .doc("The variance of all elements.")
    .composite([](const Tensor& self, bool unbiased) {
      return op_var_correction(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
    });

LS_OP(var_dim, Tensor(const Tensor&, MaybeDims, bool, bool),
      "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
    .doc("The variance over dimensions.")
    .composite([](const Tensor& self, MaybeDims dims, bool unbiased, bool keepdim) {
      return op_var_correction(self, dims, Scalar(unbiased ? 1 : 0), keepdim);
    });

LS_OP(var_dim_out, const Tensor&(const Tensor&, MaybeDims, bool, bool, const Tensor&),
      "var.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("var, written into out.")
    .composite([](const Tensor& self, MaybeDims dim, bool unbiased, bool keepdim,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_var_dim(self, dim, unbiased, keepdim));
    });

LS_OP(std, Tensor(const Tensor&, bool), "std(Tensor self, bool unbiased=True) -> Tensor")
    .doc("The standard deviation of all elements.")
    .composite([](const Tensor& self, bool unbiased) {
      return op_std_correction(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
    });

LS_OP(std_dim, Tensor(const Tensor&, MaybeDims, bool, bool),
      "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
    .doc("The standard deviation over dimensions.")
    .composite([](const Tensor& self, MaybeDims dims, bool unbiased, bool keepdim) {
      return op_std_correction(self, dims, Scalar(unbiased ? 1 : 0), keepdim);
    });

LS_OP(std_dim_out, const Tensor&(const Tensor&, MaybeDims, bool, bool, const Tensor&),
      "std.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("std, written into out.")
    .composite([](const Tensor& self, MaybeDims dim, bool unbiased, bool keepdim,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_std_dim(self, dim, unbiased, keepdim));
    });

LS_OP(std_mean, TwoTensors(const Tensor&, MaybeDims, std::optional<Scalar>, bool),
      "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False) -> (Tensor, Tensor)")
    .doc("Standard deviation and mean.")
    .composite([](const Tensor& self, MaybeDims dim, std::optional<Scalar> correction,
                  bool keepdim) {
      return TwoTensors(op_std_correction(self, dim, correction, keepdim),
                        mean(self, dim.value_or(IntList()), keepdim));
    });
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, IntList dims,
                                    std::optional<Scalar> correction, bool keepdim) {
  return op_std_mean(self, dims, correction, keepdim);
}
LS_OP(std_mean_out,
      TwoTensors(const Tensor&, MaybeDims, std::optional<Scalar>, bool, const Tensor&,
                 const Tensor&),
      "std_mean.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))")
    .doc("std_mean, written into out0 and out1.")
    .composite([](const Tensor& self, MaybeDims dim, std::optional<Scalar> correction, bool keepdim,
                  const Tensor& out0, const Tensor& out1) {
      return write_results(op_std_mean(self, dim, correction, keepdim), out0, out1);
    });
LS_OP(std_mean_of_all, TwoTensors(const Tensor&, bool),
      "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
    .doc("Standard deviation and mean of all elements.")
    .composite([](const Tensor& self, bool unbiased) {
      return op_std_mean(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
    });
LS_OP(std_mean_dim, TwoTensors(const Tensor&, MaybeDims, bool, bool),
      "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
      "keepdim=False) -> (Tensor, "
      "Tensor)")
    .doc("Standard deviation and mean over dimensions.")
    .composite([](const Tensor& self, MaybeDims dims, bool unbiased, bool keepdim) {
      return op_std_mean(self, dims, Scalar(unbiased ? 1 : 0), keepdim);
    });

}  // namespace lockstep
