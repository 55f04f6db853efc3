#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/unary.h"

LS_ALL_1(Negate)
LS_ALL_1(Absolute)
LS_ALL_1(Square)
LS_ALL_1(Sign)
LS_FLOATING_1(Exp)
LS_FLOATING_1(Log)
LS_FLOATING_1(Sqrt)
LS_FLOATING_1(ReciprocalSqrt)
LS_FLOATING_1(Reciprocal)
LS_FLOATING_1(Sin)
LS_FLOATING_1(Cos)
LS_FLOATING_1(Cube)
LS_FLOATING_OF_1(Power)
LS_POINTWISE(IntegerPower, ii, IntegerPower)
