#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/bessel.h"

LS_FLOATING_1(ModifiedBessel0)
LS_FLOATING_1(ScaledModifiedBessel0)
LS_FLOATING_1(ModifiedBessel1)
LS_FLOATING_1(ScaledModifiedBessel1)
LS_FLOATING_1(Bessel0)
LS_FLOATING_1(Bessel1)
