#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/formula.h"

LS_ALL_OF_1(SubtractFrom)
LS_ALL_OF_3(AddProduct)
LS_FLOATING_OF_3(AddQuotient)
LS_FLOATING_3(Interpolate)
LS_FLOATING_OF_2(InterpolateAt)
LS_FLOATING_2(Hypotenuse)
LS_FLOATING_2(ArcTangent2)
LS_FLOATING_2(LogAddExp)
LS_FLOATING_2(BinaryCrossEntropy)
LS_FLOATING_2(XLogY)
LS_ALL_2(PowerOf)
LS_ALL_OF_1(PowerOfNumber)
