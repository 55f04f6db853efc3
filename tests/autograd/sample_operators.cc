#include "tests/autograd/sample_operators.h"

#include "core/base/check.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/conformance/elements.h"

namespace lockstep::sample {

namespace {

Outputs like(const Tensor& x) { return one(to_dims(x.sizes()), x.dtype()); }
Outputs like_first(const Tensor& a, const Tensor&) { return like(a); }
Outputs like_last(TensorList, const Tensor& last) { return like(last); }
Outputs two_like(const Tensor& x) {
  Outputs outputs = like(x);
  outputs.specs.push_back(OutputSpec(outputs.specs[0]));
  return outputs;
}

void scale(const Out& out, const In& x, double factor) {
  for (int64_t i = 0; i < x.numel; ++i) out.data<double>()[i] = factor * x.data<double>()[i];
}
void same(const Out& out, const In& x) { scale(out, x, 1); }
void twice(const Out& out, const In& x) { scale(out, x, 2); }
void sum_of_two(const Out& out, const In& a, const In& b) {
  for (int64_t i = 0; i < a.numel; ++i) {
    out.data<double>()[i] = a.data<double>()[i] + b.data<double>()[i];
  }
}
void product_of_first(const Out& out, InList parts, const In& weight) {
  for (int64_t i = 0; i < weight.numel; ++i) {
    out.data<double>()[i] = parts[0].data<double>()[i] * weight.data<double>()[i];
  }
}
void twice_and_square(const Out& first, const Out& second, const In& x) {
  scale(first, x, 2);
  for (int64_t i = 0; i < x.numel; ++i) {
    second.data<double>()[i] = x.data<double>()[i] * x.data<double>()[i];
  }
}

}  // namespace

using Pair = std::tuple<Tensor, Tensor>;
LS_OP(pair, Pair(const Tensor&), "test_pair(Tensor self) -> (Tensor, Tensor)")
    .structured(two_like)
    .saves({"self"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      return ctx.gradients([&] {
        Tensor total;
        if (grads[0].defined()) total = grads[0] * 2;
        if (grads[1].defined()) {
          const Tensor part = grads[1] * ctx.saved(0) * 2;
          total = total.defined() ? total + part : part;
        }
        return total;
      });
    });
LS_KERNEL(CPU, "test_pair", twice_and_square, Strides::kContiguous);
Pair pair(const Tensor& x) { return op_pair(x); }

LS_OP(half_pair, Pair(const Tensor&), "test_half_pair(Tensor self) -> (Tensor, Tensor)")
    .structured(two_like)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad * 2; });
    });
LS_KERNEL(CPU, "test_half_pair", twice_and_square, Strides::kContiguous);
Pair half_pair(const Tensor& x) { return op_half_pair(x); }

LS_OP(weighted, Tensor(TensorList, const Tensor&),
      "test_weighted(Tensor[] parts, Tensor weight) -> Tensor")
    .structured(like_last)
    .saves({"parts", "weight"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      Gradients gradients(ctx.input_count());
      gradients.front() = grad * ctx.saved(ctx.saved_count() - 1);
      gradients.back() = grad * ctx.saved(0);
      return gradients;
    });
LS_KERNEL(CPU, "test_weighted", product_of_first, Strides::kContiguous);
Tensor weighted(const std::vector<Tensor>& parts, const Tensor& weight) {
  return op_weighted(parts, weight);
}

LS_OP(failing, Tensor(const Tensor&), "test_failing(Tensor self) -> Tensor")
    .structured(like)
    .derivative([](VjpContext&, const Tensor&) -> Gradients {
      throw DataError("[sample] the derivative failed.");
    });
LS_KERNEL(CPU, "test_failing", same, Strides::kContiguous);
Tensor failing(const Tensor& x) { return op_failing(x); }

LS_OP(calling, Tensor(const Tensor&), "test_calling(Tensor self) -> Tensor")
    .structured(like)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      ++calls;
      if (inside) inside();
      return ctx.gradients([&] { return grad; });
    });
LS_KERNEL(CPU, "test_calling", same, Strides::kContiguous);
Tensor calling(const Tensor& x) { return op_calling(x); }

LS_OP(silent, Tensor(const Tensor&), "test_silent(Tensor self) -> Tensor").structured(like);
LS_KERNEL(CPU, "test_silent", same, Strides::kContiguous);
Tensor silent(const Tensor& x) { return op_silent(x); }

LS_OP(constant, Tensor(const Tensor&), "test_constant(Tensor self) -> Tensor")
    .structured(like)
    .in_place()
    .not_differentiable("a test treats it as a constant");
LS_KERNEL(CPU, "test_constant", same, Strides::kContiguous);
Tensor constant(const Tensor& x) { return op_constant(x); }

LS_OP(copy_backward, Tensor(const Tensor&), "test_copy_backward(Tensor self) -> Tensor")
    .structured(like)
    .not_differentiable("nobody has written it");
LS_KERNEL(CPU, "test_copy_backward", same, Strides::kContiguous);
Tensor copy_backward(const Tensor& x) { return op_copy_backward(x); }

LS_OP(misshapen, Tensor(const Tensor&), "test_misshapen(Tensor self) -> Tensor")
    .structured(like)
    .derivative([](VjpContext&, const Tensor&) {
      return Gradients{vector({1, 2, 3, 4, 5, 6, 7})};
    });
LS_KERNEL(CPU, "test_misshapen", same, Strides::kContiguous);
Tensor misshapen(const Tensor& x) { return op_misshapen(x); }

LS_OP(short_of_one, Tensor(const Tensor&, const Tensor&),
      "test_short_of_one(Tensor a, Tensor b) -> Tensor")
    .structured(like_first)
    .derivative([](VjpContext&, const Tensor& grad) { return Gradients{grad}; });
LS_KERNEL(CPU, "test_short_of_one", sum_of_two, Strides::kContiguous);
Tensor short_of_one(const Tensor& a, const Tensor& b) { return op_short_of_one(a, b); }

LS_OP(generous, Tensor(const Tensor&), "test_generous(Tensor self) -> Tensor")
    .structured(like)
    .derivative([](VjpContext&, const Tensor& grad) {
      return Gradients{grad, grad, grad};
    });
LS_KERNEL(CPU, "test_generous", same, Strides::kContiguous);
Tensor generous(const Tensor& x) { return op_generous(x); }

LS_OP(wrong, Tensor(const Tensor&), "test_wrong(Tensor self) -> Tensor")
    .structured(like)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad * 3; });
    });
LS_KERNEL(CPU, "test_wrong", twice, Strides::kContiguous);
Tensor wrong(const Tensor& x) { return op_wrong(x); }

Tensor vector(std::initializer_list<double> values) {
  Tensor made = empty_tensor({static_cast<int64_t>(values.size())}, DType::kF64);
  std::copy(values.begin(), values.end(), made.data<double>());
  return made;
}

Tensor leaf(std::initializer_list<double> values) {
  const Tensor made = vector(values);
  made.set_requires_grad();
  return made;
}

Tensor matrix(int64_t rows, int64_t columns, bool requires_grad) {
  Tensor made = empty_tensor({rows, columns}, DType::kF64);
  for (int64_t i = 0; i < made.numel(); ++i)
    made.data<double>()[i] = 0.25 + 0.5 * static_cast<double>(i);
  made.set_requires_grad(requires_grad);
  return made;
}

std::vector<double> elements(const Tensor& tensor) { return elements_as<double>(tensor); }

}  // namespace lockstep::sample
