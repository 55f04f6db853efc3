#pragma once

#include "core/kernel_arguments.h"
#include "core/scalar.h"

namespace lockstep::cuda {

/// Writes src, which broadcasts to out's shape, into out: any strides, any dtypes.
void copy_elements(const Out& out, const In& src);
/// Writes one value into every element, any strides.
void fill_elements(const Out& out, const Scalar& value);

}  // namespace lockstep::cuda
