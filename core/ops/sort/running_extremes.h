#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

/// The extreme of the elements up to each along `dim` and its index; NaN from the first NaN on. Of
/// equal elements the last one counts and gets the gradient.
std::tuple<Tensor, Tensor> cummax(const Tensor& self, int64_t dim);
std::tuple<Tensor, Tensor> cummin(const Tensor& self, int64_t dim);

}  // namespace lockstep
