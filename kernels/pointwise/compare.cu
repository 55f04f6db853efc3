#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/compare.h"

LS_PREDICATE_2(Equal)
LS_PREDICATE_2(NotEqual)
LS_PREDICATE_2(Less)
LS_PREDICATE_2(LessEqual)
LS_PREDICATE_2(Greater)
LS_PREDICATE_2(GreaterEqual)
LS_PREDICATE_1(LogicalNot)
LS_PREDICATE_1(IsNan)
LS_PREDICATE_1(IsFinite)
