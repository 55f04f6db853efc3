#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/normal.h"

LS_FLOATING_1(ScaledErrorFunction)
LS_FLOATING_1(InverseErrorFunction)
LS_FLOATING_1(NormalCdf)
LS_FLOATING_1(LogNormalCdf)
LS_FLOATING_1(NormalQuantile)
LS_FLOATING_1(Entropy)
LS_FLOATING_1(CardinalSine)
