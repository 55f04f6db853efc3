#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/scalar.h"

namespace lockstep::cpu {

/// Writes src, broadcast to out's shape and cast to its dtype, into out. Any strides; parallel.
void copy_elements(const Out& out, const In& src);
/// Writes one number, cast to out's dtype, into every element.
void fill_elements(const Out& out, const Scalar& value);

}  // namespace lockstep::cpu
