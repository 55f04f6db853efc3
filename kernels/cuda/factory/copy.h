#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/scalar.h"

namespace lockstep::cuda {

/// out = src, converted to out's dtype; any strides, src broadcasts.
void copy_elements(const Out& out, const In& src);
/// Sets every element of out to value.
void fill_elements(const Out& out, const Scalar& value);

}  // namespace lockstep::cuda
