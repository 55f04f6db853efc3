#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

// Norms, powers and products of matrices [..., m, n], composed of other operators. Leading
// dimensions are a batch. Numbers named `ord` or `p` that are no order of the function throw Error.

/// Norms of the matrices in dimensions `dim`: the largest (ord = 1) or smallest (-1) sum of
/// absolute values in a column, of a row (inf, -inf), or the largest (2) or smallest (-2) singular
/// value.
Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntList dim = Dims{-2, -1},
                          bool keepdim = false, std::optional<DType> dtype = std::nullopt);
/// The Frobenius norm ("fro"), or the sum of the singular values ("nuc").
Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord = "fro",
                          IntList dim = Dims{-2, -1}, bool keepdim = false,
                          std::optional<DType> dtype = std::nullopt);
/// The norm of a matrix times that of its inverse, infinite for a singular matrix, 0 for a matrix
/// without elements. Orders are those of linalg_matrix_norm; none, 2 and -2 take any shape.
Tensor linalg_cond(const Tensor& self, std::optional<Scalar> p = std::nullopt);
Tensor linalg_cond(const Tensor& self, std::string_view p);

/// The product of n factors self; the inverse to the power of -n if n is negative. Integers have no
/// inverse.
Tensor linalg_matrix_power(const Tensor& self, int64_t n);
/// The exponential function of matrices. Elements that are not finite give NaNs.
Tensor linalg_matrix_exp(const Tensor& self);
/// The product of at least two matrices in the order that takes the fewest multiplications. The
/// first may be a vector (a row), and the last (a column).
Tensor linalg_multi_dot(TensorList tensors);

/// Products of the vectors along the last dimensions of self and other: [self..., other...] without
/// these. A 0-d tensor multiplies the other.
Tensor inner(const Tensor& self, const Tensor& other);
/// The product of two vectors.
Tensor vdot(const Tensor& self, const Tensor& other);
/// Kronecker's product: blocks self[i, j] * other. The shorter shape is extended by ones in front.
Tensor kron(const Tensor& self, const Tensor& other);
/// input1 weight[k] input2 + bias[k] for each k: [..., out] of input1 [..., in1], input2 [..., in2]
/// and weight [out, in1, in2].
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                OptionalTensor bias = {});

/// Covariances of the rows of self [variables, observations], or of a vector with itself.
/// `fweights` (integers) says how often each observation counts, `aweights` (floats) how much; they
/// must not be negative, which is not checked. The divisor is the sum of the weights less
/// `correction` times their mean `aweights`; where it is not positive the result is infinite or
/// NaN.
Tensor cov(const Tensor& self, int64_t correction = 1, OptionalTensor fweights = {},
           OptionalTensor aweights = {});
/// Pearson's coefficients of correlation of the rows of self, in [-1, 1].
Tensor corrcoef(const Tensor& self);
/// The logarithm of the gamma function of dimension p >= 1.
Tensor mvlgamma(const Tensor& self, int64_t p);

}  // namespace lockstep
