#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Reductions made of those in reduce.h, with the same meaning of their arguments.

/// amin and amax, of all elements or along `dim`.
std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim = std::nullopt,
                                   bool keepdim = false);
/// Sum and mean of the elements that are not NaN: 0 and NaN where all are. nanmean throws
/// DTypeError unless self is floating.
Tensor nansum(const Tensor& self, IntList dims = {}, bool keepdim = false,
              std::optional<DType> dtype = std::nullopt);
Tensor nanmean(const Tensor& self, IntList dims = {}, bool keepdim = false,
               std::optional<DType> dtype = std::nullopt);
/// Standard deviation and mean.
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, IntList dims = {},
                                    std::optional<Scalar> correction = std::nullopt,
                                    bool keepdim = false);
/// self with each slice along `dim` whose norm of order p exceeds maxnorm multiplied by maxnorm /
/// (norm + 1e-7). Throws ShapeError for fewer than two dimensions, Error unless p > 0 and maxnorm
/// >= 0.
Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm);
/// Whether isclose holds for all elements. Waits for the device.
bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);

}  // namespace lockstep
