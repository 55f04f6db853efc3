#include "kernels/common/functors.h"
#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/arithmetic.h"
#include "kernels/pointwise/round.h"

LS_FLOATING_1(Floor)
LS_FLOATING_1(Ceil)
LS_FLOATING_1(Truncate)
LS_FLOATING_1(RoundToEven)
LS_FLOATING_OF_1(RoundDecimals)
LS_FLOATING_1(Fraction)
LS_FLOATING_OF_1(ReplaceNonFinite)
LS_ALL_NUMBER(Maximum)
LS_ALL_NUMBER(Minimum)
LS_ALL_OF_1(ClampBetween)
LS_ALL_3(Clamp)
