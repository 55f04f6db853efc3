#include "core/dispatch/kernel.h"
#include "kernels/common/functors.h"
#include "kernels/cpu/factory/copy.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/reduce/sum.h"
#include "kernels/cpu/strided_loop.h"

namespace lockstep::cpu {

namespace {

using namespace functors;

/// One tile of row-major matrices with leading dimension `ld`, as tensors.
class TileViews {
 public:
  TileViews(const Tile& tile, int64_t ld)
      : first_(tile.row * ld + tile.column), sizes_{tile.rows, tile.columns}, strides_{ld, 1} {}

  Out out(const TensorArg& matrix) const { return view<Out>(matrix); }
  In in(const TensorArg& matrix) const { return view<In>(matrix); }

 private:
  template <class View>
  View view(const TensorArg& matrix) const {
    View view;
    view.address =
        static_cast<char*>(matrix.address) + first_ * static_cast<int64_t>(size_of(matrix.dtype));
    view.size_data = sizes_;
    view.stride_data = strides_;
    view.numel = sizes_[0] * sizes_[1];
    view.rank = 2;
    view.dtype = matrix.dtype;
    view.contiguous = sizes_[1] == strides_[0];
    return view;
  }

  int64_t first_;
  int64_t sizes_[2];
  int64_t strides_[2];
};

/// A tensor converted to another dtype, or itself if it has that dtype.
class InDType {
 public:
  InDType(const In& in, DType dtype) : in_(in) {
    if (!in.defined() || in.dtype == dtype) return;
    copy_ = empty_tensor(in.sizes(), dtype);
    copy_elements(Out(*copy_.impl()), in);
    in_.refer_to(*copy_.impl());
  }
  const In& get() const { return in_; }

 private:
  Tensor copy_;
  In in_;
};

// gelu is compute-bound: a separate pass over whole rows is no slower than one over tiles, whose
// rows are short.

void linear_gelu(const Out& value, const Out& of, const In& input, const In& weight,
                 const In& bias) {
  gemm(linear_product(of, input, weight, bias));
  with_floating_lane(value.dtype,
                     [&]<class T>() { elementwise<T, T>(value, GeluTanh(), of.as_in()); });
}

void linear_of_gelu_backward(const Out& out, const In& grad, const In& weight, const In& of) {
  gemm(linear_input_product(out, grad, weight));
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, T>(out, GeluTanhBackward(), out.as_in(), of);
  });
}

/// The product with its bias is rounded to the inputs' dtype before the residual is added.
void linear_add(const Out& out, const In& residual, const In& input, const In& weight,
                const In& bias) {
  const InDType narrow_bias(bias, input.dtype);
  Tensor narrow;
  Out sum = out;
  if (input.dtype != out.dtype) {
    narrow = empty_tensor(out.sizes(), input.dtype);
    sum.refer_to(*narrow.impl());
  }
  const Product product = linear_product(sum, input, weight, narrow_bias.get());
  gemm(product, [&](const Tile& tile) {
    const TileViews part(tile, product.ld);
    with_floating_lane(out.dtype, [&]<class T>() {
      elementwise<T, T, T>(part.out(out), Add(), part.in(residual), part.in(sum));
    });
  });
}

void linear_of_gelu(const Out& out, const In& value, const In&, const In& weight, const In& bias,
                    const In& residual) {
  if (residual.defined()) return linear_add(out, residual, value, weight, bias);
  gemm(linear_product(out, value, weight, bias));
}

void linear_parameters_backward(const Out& weight, const Out& bias, const In& grad,
                                const In& input) {
  gemm(linear_weight_product(weight, grad, input));
  sum_over(bias, grad, {0});
}

}  // namespace

LS_KERNEL(CPU, "linear_gelu", linear_gelu, Strides::kContiguous);
LS_KERNEL(CPU, "_linear_add", linear_add, Strides::kContiguous);
LS_KERNEL(CPU, "_linear_of_gelu", linear_of_gelu, Strides::kContiguous);
LS_KERNEL(CPU, "linear_of_gelu_backward", linear_of_gelu_backward, Strides::kContiguous);
LS_KERNEL(CPU, "linear_parameters_backward", linear_parameters_backward, Strides::kContiguous);

}  // namespace lockstep::cpu
