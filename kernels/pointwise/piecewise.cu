#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/piecewise.h"

LS_FLOATING_OF_1(Elu)
LS_FLOATING_OF_2(EluBackward)
LS_FLOATING_OF_1(LeakyRelu)
LS_FLOATING_2(PRelu)
LS_ALL_OF_1(Threshold)
LS_FLOATING_OF_1(HardShrink)
LS_FLOATING_OF_1(SoftShrink)
LS_FLOATING_1(HardSigmoid)
LS_FLOATING_1(HardSwish)
LS_FLOATING_OF_1(Softplus)
LS_FLOATING_1(LogSigmoid)
LS_FLOATING_1(Mish)
LS_FLOATING_OF_1(Logit)
