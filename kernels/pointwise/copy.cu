#include "kernels/common/functors.h"
#include "kernels/cuda/pointwise.cuh"

LS_POINTWISE_DENSE(Identity, ff, Identity)
LS_POINTWISE(Identity, dd, Identity)
LS_POINTWISE(Identity, ii, Identity)
LS_POINTWISE(Constant, d, Constant<double>)
LS_POINTWISE(Constant, i, Constant<int64_t>)
