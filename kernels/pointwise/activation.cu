#include "kernels/common/functors.h"
#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/activation.h"

LS_FLOATING_1(Tanh)
LS_FLOATING_1(Sigmoid)
LS_ALL_1(Relu)
LS_FLOATING_1(Gelu)
LS_FLOATING_1(GeluTanh)
LS_FLOATING_1(Silu)
LS_POINTWISE_DENSE(GeluBF16, ff, GeluBF16)
LS_FLOATING_2(GeluBackward)
LS_FLOATING_2(GeluTanhBackward)
LS_FLOATING_2(SiluBackward)
LS_FLOATING_2(Swiglu)
LS_FLOATING_3(SwigluBackward)
LS_FLOATING_2(TanhBackward)
LS_FLOATING_2(SigmoidBackward)
LS_ALL_OF_2(ThresholdBackward)
