#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/scalar.h"

namespace lockstep::cuda {

/// out = src, converted to out's dtype; of any strides, and src broadcasts.
void copy_elements(const Out& out, const In& src);
/// out = value everywhere.
void fill_elements(const Out& out, const Scalar& value);

}  // namespace lockstep::cuda
