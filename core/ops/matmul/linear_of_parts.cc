#include "core/ops/matmul/linear_of_parts.h"

#include <vector>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/batching_fused_linear.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/view/resize.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

/// Checks that weights of one width and dtype multiply `other`. Returns the sum of their rows.
int64_t rows_of_parts(std::string_view op, const Tensor& other, TensorList weights) {
  LS_CHECK(!weights.empty(), ShapeError, "[{}] expected at least one weight, got none.", op);
  LS_CHECK(other.dim() > 0 && is_floating(other.dtype()), ShapeError,
           "[{}] expected a floating tensor of rows, got {}.", op, to_string(other));
  int64_t rows = 0;
  for (const Tensor& weight : weights) {
    LS_CHECK(weight.dim() == 2 && weight.size(1) == weights[0].size(1), ShapeError,
             "[{}] expected weights [out, in] of one width, got shapes {} and {}.", op,
             weights[0].shape(), weight.shape());
    LS_CHECK(weight.dtype() == other.dtype(), DTypeError,
             "[{}] expected weights of dtype {}, as the other factor, got {}. Cast one with "
             "to(dtype).",
             op, to_string(other.dtype()), to_string(weight.dtype()));
    rows += weight.size(0);
  }
  return rows;
}

Outputs with_last(const Tensor& tensor, int64_t last) {
  Dims sizes = to_dims(tensor.sizes());
  sizes.back() = last;
  return one(sizes, tensor.dtype());
}

Outputs linear_of_parts(const Tensor& input, TensorList weights) {
  constexpr std::string_view kName = "linear_of_parts";
  const int64_t rows = rows_of_parts(kName, input, weights);
  LS_CHECK(input.size(-1) == weights[0].size(1), ShapeError,
           "[{}] the last sizes of input and weights differ: {} and {}. Weights are [out, in].",
           kName, input.shape(), weights[0].shape());
  return with_last(input, rows);
}

Outputs linear_of_parts_backward(const Tensor& grad_output, TensorList weights) {
  constexpr std::string_view kName = "linear_of_parts_backward";
  const int64_t rows = rows_of_parts(kName, grad_output, weights);
  LS_CHECK(grad_output.size(-1) == rows, ShapeError,
           "[{}] expected a gradient [..., {}], as many as the weights' rows, got shape {}.", kName,
           rows, grad_output.shape());
  return with_last(grad_output, weights[0].size(1));
}

}  // namespace
}  // namespace rules

namespace {

/// [..., n] -> [rows, n].
Tensor rows_of(const Tensor& tensor) {
  if (tensor.dim() == 2) return tensor;
  const int64_t rows = count_elements(tensor.sizes().first(static_cast<size_t>(tensor.dim() - 1)));
  return tensor.reshape({rows, tensor.size(-1)});
}

/// The weights, which an operator saves behind its first argument.
std::vector<Tensor> saved_weights(const VjpContext& ctx) {
  std::vector<Tensor> weights;
  for (size_t i = 1; i < ctx.saved_count(); ++i) weights.push_back(ctx.saved(i));
  return weights;
}

/// The gradients of the weights, arguments 1, 2, ...: those of the columns of `grad` that each made
/// of the rows of `input`.
void add_weight_gradients(const VjpContext& ctx, const Tensor& grad, const Tensor& input,
                          Gradients& gradients) {
  int64_t first = 0;
  for (size_t i = 1; i < ctx.input_count(); ++i) {
    const int64_t out = ctx.sizes(i)[0];
    if (ctx.needs(i)) {
      const Tensor columns = rows_of(grad).slice(1, first, first + out).t();
      const Tensor destination = ctx.destination(i);
      gradients[i] = destination.defined() ? mm_out(destination, columns, rows_of(input))
                                           : mm(columns, rows_of(input));
    }
    first += out;
  }
}

}  // namespace

LS_OP(linear_of_parts, Tensor(const Tensor&, TensorList),
      "linear_of_parts(Tensor input, Tensor[] weights) -> Tensor")
    .doc("linear(input, cat(weights)), with the weights in place where they lie side by side.")
    .structured(rules::linear_of_parts)
    .batching(batching::linear_of_parts)
    .autocast(Autocast::kLowerPrecision)
    .flops([](std::span<const Value> arguments, std::span<const Value> results) {
      return 2 * arguments[0].tensor().numel() * results[0].tensor().size(-1);
    })
    .saves({"input for weights", "weights for input"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      Gradients gradients(ctx.input_count());
      if (ctx.needs(0)) gradients[0] = linear_of_parts_backward(grad, saved_weights(ctx));
      add_weight_gradients(ctx, grad, ctx.saved(0), gradients);
      return gradients;
    });
Tensor linear_of_parts(const Tensor& input, TensorList weights) {
  return op_linear_of_parts(input, weights);
}

LS_OP(linear_of_parts_backward, Tensor(const Tensor&, TensorList),
      "linear_of_parts_backward(Tensor grad_output, Tensor[] weights) -> Tensor")
    .doc("grad_output times cat(weights), in place where they lie side by side.")
    .structured(rules::linear_of_parts_backward)
    .batching(batching::linear_of_parts_backward)
    .flops([](std::span<const Value> arguments, std::span<const Value> results) {
      return 2 * arguments[0].tensor().numel() * results[0].tensor().size(-1);
    })
    .saves({"grad_output for weights", "weights for grad_output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      Gradients gradients(ctx.input_count());
      if (ctx.needs(0)) gradients[0] = linear_of_parts(grad, saved_weights(ctx));
      add_weight_gradients(ctx, ctx.saved(0), grad, gradients);
      return gradients;
    });
Tensor linear_of_parts_backward(const Tensor& grad_output, TensorList weights) {
  return op_linear_of_parts_backward(grad_output, weights);
}

Tensor linear_of_parts_reference(const Tensor& input, TensorList weights) {
  return linear(input, cat(weights, 0));
}

void lay_side_by_side(TensorList tensors) {
  size_t bytes = 0;
  for (const Tensor& each : tensors) {
    const bool fits = each.is_contiguous() && each.dtype() == tensors[0].dtype() &&
                      each.device() == tensors[0].device();
    LS_CHECK(fits, Error,
             "[lay_side_by_side] expected dense tensors of one dtype and device, got {} and {}.",
             to_string(tensors[0]), to_string(each));
    const Storage& storage = *each.storage();
    if (!storage.owns_memory() && storage.parent() == nullptr) return;
    bytes += each.nbytes();
  }
  if (bytes == 0) return;
  const auto joint = make_ref<Storage>(bytes, tensors[0].device());
  size_t offset = 0;
  for (const Tensor& each : tensors) {
    const auto window = make_ref<Storage>(joint, offset, each.nbytes());
    offset += each.nbytes();
    const Tensor place(
        make_ref<TensorImpl>(window, each.sizes(), each.strides(), int64_t{0}, each.dtype()));
    copy_(place, each.detach());
    set_(each, window, 0, each.sizes(), each.strides());
  }
}

}  // namespace lockstep
