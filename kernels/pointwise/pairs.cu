#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/pairs.h"

LS_FLOATING_2(CopySign)
LS_ALL_2(LargerNumber)
LS_ALL_2(SmallerNumber)
LS_ALL_2(Step)
LS_POINTWISE(GreatestDivisor, iii, GreatestDivisor)
LS_POINTWISE(LeastMultiple, iii, LeastMultiple)
LS_FLOATING_2(LogAddExp2)
LS_FLOATING_2(XLog1PY)
LS_FLOATING_2(HurwitzZeta)
LS_FLOATING_2(NextAfter)
LS_POINTWISE_DENSE(NextAfterBF16, fff, NextAfterBF16)
LS_POINTWISE_DENSE(NextAfterF16, fff, NextAfterF16)
LS_PREDICATE_1(SignBit)
