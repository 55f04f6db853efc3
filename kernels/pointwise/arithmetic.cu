#include "kernels/common/functors.h"
#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/arithmetic.h"

LS_ALL_2(Add)
LS_ALL_2(Subtract)
LS_ALL_2(Multiply)
LS_ALL_2(Maximum)
LS_ALL_2(Minimum)
LS_ALL_OF_2(AddScaled)
LS_FLOATING_2(Divide)
LS_ALL_NUMBER(Add)
LS_ALL_NUMBER(Subtract)
LS_ALL_NUMBER(Multiply)
LS_FLOATING_NUMBER(Divide)

LS_POINTWISE_DENSE(Where, fbff, Where)
LS_POINTWISE(Where, dbdd, Where)
LS_POINTWISE(Where, ibii, Where)
LS_POINTWISE_DENSE(MaskedFill, ffb, MaskedFill<float>)
LS_POINTWISE(MaskedFill, ddb, MaskedFill<double>)
LS_POINTWISE(MaskedFill, iib, MaskedFill<int64_t>)
LS_POINTWISE_DENSE(MaskedScale, ffb, MaskedScale<float>)
LS_POINTWISE(MaskedScale, ddb, MaskedScale<double>)
