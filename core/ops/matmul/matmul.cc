#include "core/ops/matmul/matmul.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/matmul/batching_products.h"
#include "core/ops/matmul/fused_linear.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_checks.h"
#include "core/tensor/number_range.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
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
  check_factor(op, "beta", a.dtype(), beta);
  check_factor(op, "alpha", a.dtype(), alpha);
  return outputs;
}

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

}  // namespace
}  // namespace rules

namespace {

bool is_column_major(const InputMeta& input) {
  const Dims strides = input.strides();
  return strides[0] == 1 && strides[1] == input.sizes[0] && input.sizes[0] > 1;
}

Tensor times(const Tensor& tensor, const Scalar& factor) {
  return factor.to_double() == 1.0 ? tensor : mul(tensor, factor);
}

/// The gradient alpha a b of the i-th argument, a matrix, in the layout of that argument: a weight
/// is passed as weight.t(), and the derivative of t() transposes the gradient back to row-major. It
/// is written to its destination: the communication arena under DDP, new memory otherwise.
Tensor matrix_gradient(VjpContext& ctx, size_t i, const Tensor& a, const Tensor& b,
                       const Scalar& alpha = 1) {
  const bool turned = is_column_major(ctx.input(i));
  if (const Tensor destination = ctx.destination(i); destination.defined()) {
    if (turned) {
      mm_out(destination.t(), b.t(), a.t());
    } else {
      mm_out(destination, a, b);
    }
    return alpha.to_double() == 1.0 ? destination : mul_(destination, alpha);
  }
  return times(turned ? mm(b.t(), a.t()).t() : mm(a, b), alpha);
}

/// Whether a call of addmm is a linear layer's, whose bias and weight.t() have gradients that can
/// be computed together: neither has a destination of its own.
bool is_linear(VjpContext& ctx, const Tensor& grad) {
  const auto is_one = [&](size_t i) { return ctx.argument<Scalar>(i).to_double() == 1.0; };
  return ctx.needs(0) && ctx.needs(2) && ctx.input(0).sizes.size() == 1 &&
         ctx.input(0).sizes[0] == grad.size(1) && is_column_major(ctx.input(2)) &&
         !ctx.destination(0).defined() && !ctx.destination(2).defined() && is_one(3) && is_one(4) &&
         grad.is_contiguous() && ctx.saved(0).is_contiguous();
}

/// The gradient a b of the i-th argument, a batch of matrices, in the layout of that argument.
Tensor batch_gradient(VjpContext& ctx, size_t i, const Tensor& a, const Tensor& b) {
  const InputMeta& input = ctx.input(i);
  const Dims strides = input.strides();
  const bool turned =
      strides[1] == 1 && strides[2] == input.sizes[1] && input.sizes[1] > 1 && input.sizes[2] > 1;
  return turned ? bmm(b.transpose(1, 2), a.transpose(1, 2)).transpose(1, 2) : bmm(a, b);
}

/// A matrix of one column.
Tensor as_column(const Tensor& vector) { return vector.unsqueeze(1); }

void check_vector(std::string_view op, const Tensor& tensor) {
  LS_CHECK(tensor.dim() == 1, ShapeError, "[{}] expected a vector, got shape {}.", op,
           tensor.shape());
}

/// `tensor` [..., n, k] with its leading dimensions broadcast to `batch` and flattened into one.
Tensor as_batch(const Tensor& tensor, const Dims& batch, int64_t joined) {
  Dims sizes = batch;
  sizes.push_back(tensor.size(-2));
  sizes.push_back(tensor.size(-1));
  return tensor.expand(sizes).reshape({joined, tensor.size(-2), tensor.size(-1)});
}

/// Number of rows of a tensor seen as a matrix [rows, last size].
int64_t count_rows(const Tensor& tensor) {
  return count_elements(tensor.sizes().first(static_cast<size_t>(tensor.dim() - 1)));
}

Tensor matmul_body(const Tensor& self, const Tensor& other) {
  LS_CHECK(self.dim() > 0 && other.dim() > 0, ShapeError,
           "[matmul] expected at least one dimension on either side, got shapes {} and {}. Use "
           "mul for numbers.",
           self.shape(), other.shape());
  const bool row = self.dim() == 1;
  const bool column = other.dim() == 1;
  if (row && column) return dot(self, other);
  if (self.dim() == 2 && column) return mv(self, other);
  if (self.dim() == 2 && other.dim() == 2) return mm(self, other);
  const Tensor left = row ? self.unsqueeze(0) : self;
  const Tensor right = column ? other.unsqueeze(1) : other;
  LS_CHECK(left.size(-1) == right.size(-2), ShapeError, "[matmul] inner sizes differ: {} and {}.",
           self.shape(), other.shape());

  const IntList left_batch = left.sizes().first(static_cast<size_t>(left.dim() - 2));
  const IntList right_batch = right.sizes().first(static_cast<size_t>(right.dim() - 2));
  const Dims batch = broadcast("matmul", left_batch, right_batch);
  Dims sizes = batch;
  if (!row) sizes.push_back(left.size(-2));
  if (!column) sizes.push_back(right.size(-1));
  if (right.dim() == 2) {  // one matrix for every row of self
    return mm(left.reshape({count_rows(left), left.size(-1)}), right).view(sizes);
  }
  const int64_t joined = count_elements(batch);
  return bmm(as_batch(left, batch, joined), as_batch(right, batch, joined)).view(sizes);
}

Tensor linear_body(const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  LS_CHECK(input.dim() > 0 && (weight.dim() == 1 || weight.dim() == 2), ShapeError,
           "[linear] expected input [..., in] and weight [out, in] or [in], got shapes {} and {}.",
           input.shape(), weight.shape());
  LS_CHECK(
      input.size(-1) == weight.size(-1), ShapeError,
      "[linear] the last sizes of input and weight differ: {} and {}. The weight is [out, in].",
      input.shape(), weight.shape());
  if (weight.dim() == 1) {
    const Tensor product = matmul(input, weight);
    return bias ? add(product, *bias) : product;
  }
  const auto product = [&](const Tensor& rows) {
    return bias ? addmm(*bias, rows, weight.t()) : mm(rows, weight.t());
  };
  if (input.dim() == 2) return product(input);
  Dims sizes = to_dims(input.sizes());
  sizes.back() = weight.size(0);
  return product(input.reshape({count_rows(input), input.size(-1)})).view(sizes);
}

}  // namespace

namespace {

/// FLOPs of a product [..., n, k] x [k, m] of arguments `first` and `first` + 1.
template <size_t first>
int64_t product_flops(std::span<const Value> arguments, std::span<const Value>) {
  const Tensor& a = arguments[first].tensor();
  return 2 * a.numel() * arguments[first + 1].tensor().size(-1);
}

/// FLOPs of a product of a matrix and a vector, or of two vectors.
template <size_t first>
int64_t vector_flops(std::span<const Value> arguments, std::span<const Value>) {
  return 2 * arguments[first].tensor().numel();
}

}  // namespace

LS_OP(mm, Tensor(const Tensor&, const Tensor&), "mm(Tensor self, Tensor mat2) -> Tensor")
    .doc("Matrix product of self [n, k] and mat2 [k, m].")
    .structured(rules::mm)
    .batching(batching::mm)
    .out()
    .flops(product_flops<0>)
    .autocast(Autocast::kLowerPrecision)
    .saves({"self for mat2", "mat2 for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return matrix_gradient(ctx, 0, grad, ctx.saved(1).t()); },
                           [&] { return matrix_gradient(ctx, 1, ctx.saved(0).t(), grad); });
    });
Tensor mm(const Tensor& self, const Tensor& mat2) { return op_mm(self, mat2); }
const Tensor& mm_out(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  return op_mm.out(self, mat2, out);
}

LS_OP(addmm, Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar),
      "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .doc("beta * self + alpha * mat1 mat2; self broadcasts to the product's shape.")
    .structured(rules::addmm)
    .batching(batching::addmm)
    .in_place()
    .out()
    .flops(product_flops<1>)
    .autocast(Autocast::kLowerPrecision)
    .saves({"mat1 for mat2", "mat2 for mat1"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Scalar alpha = ctx.argument<Scalar>(4);
      const Scalar beta = ctx.argument<Scalar>(3);
      const auto of_mat1 = [&] { return matrix_gradient(ctx, 1, grad, ctx.saved(1).t(), alpha); };
      if (is_linear(ctx, grad)) {
        auto [weight, bias] = linear_parameters_backward(grad, ctx.saved(0));
        return ctx.gradients([&] { return ctx.unbroadcast(bias, 0); }, of_mat1,
                             [&] { return weight.t(); });
      }
      return ctx.gradients([&] { return times(ctx.unbroadcast(grad, 0), beta); }, of_mat1,
                           [&] { return matrix_gradient(ctx, 2, ctx.saved(0).t(), grad, alpha); });
    });
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  return op_addmm(self, mat1, mat2, beta, alpha);
}
const Tensor& addmm_out(const Tensor& out, const Tensor& self, const Tensor& mat1,
                        const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  return op_addmm.out(self, mat1, mat2, beta, alpha, out);
}

LS_OP(bmm, Tensor(const Tensor&, const Tensor&), "bmm(Tensor self, Tensor mat2) -> Tensor")
    .doc("Batched product of self [b, n, k] and mat2 [b, k, m].")
    .structured(rules::bmm)
    .batching(batching::bmm)
    .out()
    .flops(product_flops<0>)
    .autocast(Autocast::kLowerPrecision)
    .saves({"self for mat2", "mat2 for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return batch_gradient(ctx, 0, grad, ctx.saved(1).transpose(1, 2)); },
          [&] { return batch_gradient(ctx, 1, ctx.saved(0).transpose(1, 2), grad); });
    });
Tensor bmm(const Tensor& self, const Tensor& mat2) { return op_bmm(self, mat2); }
const Tensor& bmm_out(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  return op_bmm.out(self, mat2, out);
}

LS_OP(baddbmm, Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar),
      "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor")
    .doc("beta * self + alpha * batch1 batch2, batch by batch.")
    .structured(rules::baddbmm)
    .batching(batching::baddbmm)
    .in_place()
    .out()
    .flops(product_flops<1>)
    .autocast(Autocast::kLowerPrecision)
    .saves({"batch1 for batch2", "batch2 for batch1"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Scalar alpha = ctx.argument<Scalar>(4);
      return ctx.gradients([&] { return times(ctx.unbroadcast(grad, 0), ctx.argument<Scalar>(3)); },
                           [&] {
                             const Tensor other = ctx.saved(1).transpose(1, 2);
                             return times(batch_gradient(ctx, 1, grad, other), alpha);
                           },
                           [&] {
                             const Tensor other = ctx.saved(0).transpose(1, 2);
                             return times(batch_gradient(ctx, 2, other, grad), alpha);
                           });
    });
Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  return op_baddbmm(self, batch1, batch2, beta, alpha);
}

LS_OP(mv, Tensor(const Tensor&, const Tensor&), "mv(Tensor self, Tensor vec) -> Tensor")
    .doc("Product of matrix self [n, k] and vector vec [k].")
    .flops(vector_flops<0>)
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& self, const Tensor& vec) {
      check_vector("mv", vec);
      return mm(self, as_column(vec)).squeeze(1);
    });
Tensor mv(const Tensor& self, const Tensor& vec) { return op_mv(self, vec); }

LS_OP(mv_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "mv.out(Tensor self, Tensor vec, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("mv, written into out.")
    .composite([](const Tensor& self, const Tensor& vec, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_mv(self, vec));
    });

LS_OP(addmv, Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar),
      "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .doc("beta * self + alpha * mat vec; self broadcasts to the product's shape.")
    .flops(vector_flops<1>)
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta,
                  Scalar alpha) {
      check_vector("addmv", vec);
      LS_CHECK(self.dim() <= 1, ShapeError, "[addmv] self must stretch to a vector, got shape {}.",
               self.shape());
      check_holds("addmv", "beta", mat.dtype(), beta);
      check_holds("addmv", "alpha", mat.dtype(), alpha);
      if (!is_floating(mat.dtype())) {  // unlike addmm, it truncates beta and alpha, as in ATen
        beta = beta.to_int();
        alpha = alpha.to_int();
      }
      const Tensor added = self.dim() == 1 ? as_column(self) : self;
      return addmm(added, mat, as_column(vec), beta, alpha).squeeze(1);
    });
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  return op_addmv(self, mat, vec, beta, alpha);
}

LS_OP(addmv_in_place, const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar),
      "addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor(a!)")
    .doc("addmv, written into self.")
    .composite([](const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta,
                  Scalar alpha) -> const Tensor& {
      return copy_(self, op_addmv(self, mat, vec, beta, alpha));
    });

LS_OP(addmv_out,
      const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar, const Tensor&),
      "addmv.out(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("addmv, written into out.")
    .composite([](const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta,
                  Scalar alpha, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_addmv(self, mat, vec, beta, alpha));
    });

LS_OP(dot, Tensor(const Tensor&, const Tensor&), "dot(Tensor self, Tensor tensor) -> Tensor")
    .doc("Dot product of two vectors.")
    .flops(vector_flops<0>)
    .autocast(Autocast::kPromote)
    .composite([](const Tensor& self, const Tensor& tensor) {
      check_vector("dot", self);
      check_vector("dot", tensor);
      return mm(self.unsqueeze(0), as_column(tensor)).view(IntList());
    });
Tensor dot(const Tensor& self, const Tensor& tensor) { return op_dot(self, tensor); }

LS_OP(dot_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "dot.out(Tensor self, Tensor tensor, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("dot, written into out.")
    .composite([](const Tensor& self, const Tensor& tensor, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_dot(self, tensor));
    });

LS_OP(matmul, Tensor(const Tensor&, const Tensor&), "matmul(Tensor self, Tensor other) -> Tensor")
    .doc("Product with NumPy's rules for vectors, matrices and leading batch dimensions.")
    .autocast(Autocast::kLowerPrecision)
    .composite(matmul_body);
Tensor matmul(const Tensor& self, const Tensor& other) { return op_matmul(self, other); }

LS_OP(matmul_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "matmul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("matmul, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_matmul(self, other));
    });

LS_OP(linear, Tensor(const Tensor&, const Tensor&, OptionalTensor),
      "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
    .doc("input [..., in] times weight [out, in] transposed, plus bias [out].")
    .autocast(Autocast::kLowerPrecision)
    .composite(linear_body);
Tensor linear(const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  return op_linear(input, weight, bias);
}

LS_OP(linear_out, const Tensor&(const Tensor&, const Tensor&, OptionalTensor, const Tensor&),
      "linear.out(Tensor input, Tensor weight, Tensor? bias=None, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linear, written into out.")
    .composite([](const Tensor& input, const Tensor& weight, OptionalTensor bias,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linear(input, weight, bias));
    });

}  // namespace lockstep
