#include "kernels/common/functors.h"
#include "kernels/cuda/pointwise.cuh"

LS_POINTWISE_DENSE(Same, ff, Same)
LS_POINTWISE(Same, dd, Same)
LS_POINTWISE(Same, ii, Same)
LS_POINTWISE(Constant, d, Constant<double>)
LS_POINTWISE(Constant, i, Constant<int64_t>)
