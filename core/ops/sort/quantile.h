#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

/// The q-quantiles along `dim`, or of all elements: 0-d q gives one, a vector q gives them along a
/// new first dimension. A quantile between two elements is interpolated as `interpolation` says:
/// "linear", "lower", "higher", "midpoint" or "nearest" (of two equally near the even one). NaN
/// where there is a NaN. q has self's floating dtype and lies in [0, 1]; at most 2^24 elements
/// along `dim`, at least one.
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = std::nullopt,
                bool keepdim = false, std::string_view interpolation = "linear");
/// quantile of the elements that are not NaN; NaN if all are.
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = std::nullopt,
                   bool keepdim = false, std::string_view interpolation = "linear");
/// The number of elements in each of `bins` equal parts of [min, max], in self's floating dtype;
/// others, and NaN, are not counted. min = max means the range of the elements, one wider on both
/// sides if they are all equal. Throws Error when that is not finite.
Tensor histc(const Tensor& self, int64_t bins = 100, const Scalar& min = 0, const Scalar& max = 0);

}  // namespace lockstep
