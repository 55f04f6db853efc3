#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Layer norm and RMS norm of a residual stream: a tensor of f32 to which every block adds, read by
// products of a lower precision. The result is written once, in the dtype that its readers compute
// in; statistics are kept in the stream's dtype. Backward adds the gradients of the stream's other
// uses in the pass that computes its own. Arguments and bits are those of core/ops/norm/norm.h,
// with the result rounded to `dtype` at the end; autocast casts none of the tensors. For f64
// streams `dtype` is f64. A stream in f16 or bf16 is computed by the operators of norm.h.

/// A norm, and the sum that it was computed of.
struct NormedSum {
  Tensor normed;
  Tensor sum;
};

/// layer_norm(stream), in `dtype`.
Tensor layer_norm_of_stream(const Tensor& stream, IntList normalized_shape, OptionalTensor weight,
                            OptionalTensor bias, double eps, DType dtype);
/// layer_norm(stream + branch) in `dtype`, and stream + branch in the stream's dtype. The branch
/// has the stream's shape and may have a lower precision; its gradient is written in its own dtype.
NormedSum layer_norm_of_sum(const Tensor& stream, const Tensor& branch, IntList normalized_shape,
                            OptionalTensor weight, OptionalTensor bias, double eps, DType dtype);
/// The same for rms_norm.
Tensor rms_norm_of_stream(const Tensor& stream, IntList normalized_shape, OptionalTensor weight,
                          double eps, DType dtype);
NormedSum rms_norm_of_sum(const Tensor& stream, const Tensor& branch, IntList normalized_shape,
                          OptionalTensor weight, double eps, DType dtype);

// The operators behind these functions. `centre`: layer norm, else RMS norm, which has no mean
// (undefined) and takes no bias. Weight and bias have the stream's dtype; `dtype` is the stream's
// where it is not given.

/// Result, mean and 1 / sqrt(variance + eps).
std::tuple<Tensor, Tensor, Tensor> stream_norm(const Tensor& stream, IntList normalized_shape,
                                               OptionalTensor weight, OptionalTensor bias,
                                               double eps, bool centre, std::optional<DType> dtype);
/// Result, stream + branch, mean and 1 / sqrt(variance + eps).
std::tuple<Tensor, Tensor, Tensor, Tensor> stream_sum_norm(
    const Tensor& stream, const Tensor& branch, IntList normalized_shape, OptionalTensor weight,
    OptionalTensor bias, double eps, bool centre, std::optional<DType> dtype);
/// Gradients of `input`, which was normalised (layer norm if there is a mean), plus `carried` where
/// it is given; the same again in `branch_dtype`; and of weight and bias. Those not selected by
/// `output_mask` are undefined.
std::tuple<Tensor, Tensor, Tensor, Tensor> stream_norm_backward(
    const Tensor& grad_out, OptionalTensor carried, const Tensor& input, IntList normalized_shape,
    OptionalTensor mean, const Tensor& rstd, OptionalTensor weight,
    std::optional<DType> branch_dtype, BoolList output_mask);

/// The functions above composed of simple operators: the references that the kernels are tested
/// against. `centre` as above.
Tensor stream_norm_reference(const Tensor& stream, IntList normalized_shape, OptionalTensor weight,
                             OptionalTensor bias, double eps, bool centre, DType dtype);
NormedSum stream_sum_norm_reference(const Tensor& stream, const Tensor& branch,
                                    IntList normalized_shape, OptionalTensor weight,
                                    OptionalTensor bias, double eps, bool centre, DType dtype);

}  // namespace lockstep
