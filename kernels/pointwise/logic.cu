#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/compare.h"
#include "kernels/pointwise/logic.h"

LS_PREDICATE_2(LogicalAnd)
LS_PREDICATE_2(LogicalOr)
LS_PREDICATE_2(LogicalXor)
LS_POINTWISE(LogicalAnd, bbb, LogicalAnd)
LS_POINTWISE(LogicalOr, bbb, LogicalOr)
LS_POINTWISE(LogicalXor, bbb, LogicalXor)
LS_PREDICATE_1(IsInfinite)
LS_PREDICATE_2(IsClose)
LS_POINTWISE(BitwiseAnd, bbb, BitwiseAnd)
LS_POINTWISE(BitwiseOr, bbb, BitwiseOr)
LS_POINTWISE(BitwiseXor, bbb, BitwiseXor)
LS_POINTWISE(BitwiseAnd, iii, BitwiseAnd)
LS_POINTWISE(BitwiseOr, iii, BitwiseOr)
LS_POINTWISE(BitwiseXor, iii, BitwiseXor)
LS_POINTWISE(LogicalNot, bb, LogicalNot)
LS_POINTWISE(BitwiseNot, ii, BitwiseNot)
LS_POINTWISE(ShiftLeft, iii, ShiftLeft)
LS_POINTWISE(ShiftRight, iii, ShiftRight)
