// Functors by which a residual stream in f32 meets tensors in bf16 or f16.

#include "kernels/common/functors.h"
#include "kernels/cuda/pointwise_mixed.cuh"
#include "kernels/pointwise/arithmetic.h"

LS_POINTWISE_MIXED(Add)
LS_POINTWISE_MIXED(Subtract)
LS_POINTWISE_MIXED(Multiply)
