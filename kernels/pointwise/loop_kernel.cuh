#pragma once

// What the text of a GPU's loop kernel begins with (kernels/cuda/loop_source.h): this header and
// those that it includes are compiled at run time, without the library and without a C++ library.

#include "kernels/common/functors.h"
#include "kernels/cuda/functor_call.cuh"
#include "kernels/cuda/loop_elements.cuh"
#include "kernels/pointwise/activation.h"
#include "kernels/pointwise/arithmetic.h"
#include "kernels/pointwise/bessel.h"
#include "kernels/pointwise/compare.h"
#include "kernels/pointwise/division.h"
#include "kernels/pointwise/formula.h"
#include "kernels/pointwise/logic.h"
#include "kernels/pointwise/normal.h"
#include "kernels/pointwise/pairs.h"
#include "kernels/pointwise/piecewise.h"
#include "kernels/pointwise/round.h"
#include "kernels/pointwise/special.h"
#include "kernels/pointwise/unary.h"
