#include "core/ops/random/random.h"

#include <cmath>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/options_of.h"
#include "core/ops/pointwise/pointwise_checks.h"
#include "core/ops/pointwise/pointwise_layout.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/random/random_rules.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {
namespace {

void require_probability(std::string_view op, double p) {
  LS_CHECK(p >= 0 && p <= 1, Error, "[{}] p must be a probability in [0, 1], got {}.", op, p);
}

/// The largest n for which randperm can give each integer below n, as PyTorch counts: n itself for
/// integers, one more than the mantissa's range for floating dtypes.
int64_t most_distinct(DType dtype) {
  return is_floating(dtype) ? *end_of_exact_integers(dtype) : integer_range(dtype).second;
}

Outputs uniform(const Tensor& self, double from, double to, Generator*) {
  require_floating("uniform", self);
  LS_CHECK(from <= to, Error, "[uniform] expected from <= to, got {} and {}.", from, to);
  const auto is_number = [&](double value) {
    return std::isfinite(value) && can_hold(self.dtype(), value);
  };
  LS_CHECK(
      is_number(from) && is_number(to) && is_number(to - from), Error,
      "[uniform] expected from, to and to - from to be finite numbers of {}, got {} and {}. Use "
      "a smaller range.",
      to_string(self.dtype()), from, to);
  return like_self(self);
}
Outputs normal(const Tensor& self, double, double std, Generator*) {
  require_floating("normal", self);
  LS_CHECK(std >= 0, Error, "[normal] std must not be negative, got {}.", std);
  return like_self(self);
}
Outputs bernoulli(const Tensor& self, double p, Generator*) {
  require_probability("bernoulli", p);
  return like_self(self);
}
Outputs randperm(int64_t n, Generator*, std::optional<DType> dtype, std::optional<Layout>,
                 std::optional<Device>, std::optional<bool>) {
  LS_CHECK(n >= 0 && n < (int64_t{1} << 32), Error, "[randperm] n must be in [0, 2^32), got {}.",
           n);
  const DType result = dtype.value_or(DType::kI64);
  LS_CHECK(
      n <= most_distinct(result), DTypeError,
      "[randperm] {} cannot hold each integer below n: expected at most {}, got {}. Use a wider "
      "dtype.",
      to_string(result), most_distinct(result), n);
  return one({n}, result);
}
Outputs native_dropout(const Tensor& input, double p, std::optional<bool>) {
  require_probability("native_dropout", p);
  require_floating("native_dropout", input);
  Outputs outputs = like_self(input);
  OutputSpec mask = outputs.specs[0];
  mask.dtype = DType::kBool;
  outputs.specs.push_back(mask);
  return outputs;
}
Outputs native_dropout_backward(const Tensor& grad, const Tensor& mask, double) {
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[native_dropout_backward] mask must be a bool tensor, got {}.", to_string(mask));
  return pointwise_result("native_dropout_backward", to_floating(grad.dtype()), {&grad, &mask});
}

}  // namespace
}  // namespace rules

namespace {

void check_dropout(double p) {
  LS_CHECK(p >= 0 && p <= 1, Error, "[dropout] p must be a probability in [0, 1], got {}.", p);
}

/// The factor of the elements that dropout keeps; at p = 1 it keeps none.
double dropout_scale(double p, bool train) {
  if (!train) return 1;
  return p == 1 ? 0 : 1 / (1 - p);
}

}  // namespace

LS_OP(uniform, Tensor(const Tensor&, double, double, Generator*),
      "uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor")
    .doc("A tensor like self of numbers uniform in [from, to).")
    .structured(rules::uniform)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return zeros_like(grad); });
    });
const Tensor& uniform_(const Tensor& self, double from, double to, Generator* generator) {
  return op_uniform.in_place(self, from, to, generator);
}

LS_OP(normal, Tensor(const Tensor&, double, double, Generator*),
      "normal(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor")
    .doc("A tensor like self of normal numbers; ATen calls this form normal_functional.")
    .structured(rules::normal)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return zeros_like(grad); });
    });
const Tensor& normal_(const Tensor& self, double mean, double std, Generator* generator) {
  return op_normal.in_place(self, mean, std, generator);
}

LS_OP(bernoulli, Tensor(const Tensor&, double, Generator*),
      "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor")
    .doc("A tensor like self, each element 1 with probability p, else 0.")
    .structured(rules::bernoulli)
    .in_place()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return zeros_like(grad); });
    });
Tensor bernoulli(const Tensor& self, double p, Generator* generator) {
  return op_bernoulli(self, p, generator);
}
const Tensor& bernoulli_(const Tensor& self, double p, Generator* generator) {
  return op_bernoulli.in_place(self, p, generator);
}

LS_OP(rand,
      Tensor(IntList, Generator*, std::optional<DType>, std::optional<Layout>,
             std::optional<Device>, std::optional<bool>),
      "rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Numbers uniform in [0, 1).")
    .composite([](IntList size, Generator* generator, std::optional<DType> dtype,
                  std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
      return Tensor(uniform_(empty(size, options_of(dtype, device)), 0, 1, generator));
    });
Tensor rand(IntList sizes, TensorOptions options, Generator* generator) {
  Tensor result =
      op_rand(sizes, generator, options.dtype, std::nullopt, options.device, std::nullopt);
  if (options.requires_grad) result.set_requires_grad();
  return result;
}

LS_OP(randn,
      Tensor(IntList, Generator*, std::optional<DType>, std::optional<Layout>,
             std::optional<Device>, std::optional<bool>),
      "randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Normal numbers of mean 0 and variance 1.")
    .composite([](IntList size, Generator* generator, std::optional<DType> dtype,
                  std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
      return Tensor(normal_(empty(size, options_of(dtype, device)), 0, 1, generator));
    });
Tensor randn(IntList sizes, TensorOptions options, Generator* generator) {
  Tensor result =
      op_randn(sizes, generator, options.dtype, std::nullopt, options.device, std::nullopt);
  if (options.requires_grad) result.set_requires_grad();
  return result;
}

LS_OP(randperm,
      Tensor(int64_t, Generator*, std::optional<DType>, std::optional<Layout>,
             std::optional<Device>, std::optional<bool>),
      "randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("The numbers 0 .. n-1 in random order.")
    .structured(rules::randperm)
    .not_differentiable("a factory has no differentiable input");
Tensor randperm(int64_t n, TensorOptions options, Generator* generator) {
  return op_randperm(n, generator, options.dtype, std::nullopt, options.device, std::nullopt);
}

using TwoTensors = std::tuple<Tensor, Tensor>;
LS_OP(native_dropout, TwoTensors(const Tensor&, double, std::optional<bool>),
      "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)")
    .doc(
        "input with elements zeroed at probability p and the rest divided by 1 - p; the mask of "
        "those kept.")
    .structured(rules::native_dropout)
    .tag("nondeterministic_seeded")
    .saves({"output1"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const bool train = ctx.argument<std::optional<bool>>(2).value_or(true);
      const double scale = dropout_scale(ctx.argument<double>(1), train);
      return ctx.gradients([&] { return native_dropout_backward(grad, ctx.saved(0), scale); });
    });
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  return op_native_dropout(input, p, train);
}

LS_OP(native_dropout_out,
      TwoTensors(const Tensor&, double, std::optional<bool>, const Tensor&, const Tensor&),
      "native_dropout.out(Tensor input, float p, bool? train, *, Tensor(a!) out0, Tensor(b!) "
      "out1) -> (Tensor(a!), Tensor(b!))")
    .doc("native_dropout, written into out0 and out1.")
    .composite([](const Tensor& input, double p, std::optional<bool> train, const Tensor& out0,
                  const Tensor& out1) {
      const auto [result, mask] = native_dropout(input, p, train);
      return TwoTensors(clone_out(out0, result), clone_out(out1, mask));
    });

LS_OP(native_dropout_backward, Tensor(const Tensor&, const Tensor&, double),
      "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
    .doc("grad_output * mask * scale.")
    .structured(rules::native_dropout_backward)
    .batching(batching::elementwise)
    .out()
    .saves({"mask"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return native_dropout_backward(grad, ctx.saved(0), ctx.argument<double>(2)); },
          [] { return Tensor(); });
    });
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  return op_native_dropout_backward(grad_output, mask, scale);
}

LS_OP(dropout, Tensor(const Tensor&, double, bool),
      "dropout(Tensor input, float p, bool train) -> Tensor")
    .doc("While training, zeroes elements with probability p and divides the rest by 1 - p.")
    .composite([](const Tensor& input, double p, bool train) {
      check_dropout(p);
      if (!train || p == 0) return input;
      return std::get<0>(native_dropout(input, p, train));
    });
Tensor dropout(const Tensor& input, double p, bool train) { return op_dropout(input, p, train); }

LS_OP(dropout_, const Tensor&(const Tensor&, double, bool),
      "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
    .doc("dropout in place.")
    .composite([](const Tensor& self, double p, bool train) -> const Tensor& {
      check_dropout(p);
      return train && p != 0 ? copy_(self, dropout(self, p, train)) : self;
    });

}  // namespace lockstep
