#include "kernels/cuda/pointwise.cuh"
#include "kernels/pointwise/division.h"

LS_FLOATING_2(FMod)
LS_FLOATING_2(Remainder)
LS_FLOATING_2(DivideTruncate)
LS_FLOATING_2(DivideFloor)
LS_POINTWISE(Guarded_IntegerRemainder, iii, Guarded<::lockstep::functors::IntegerRemainder>)
LS_POINTWISE(Guarded_FlooredIntegerRemainder, iii,
             Guarded<::lockstep::functors::FlooredIntegerRemainder>)
LS_POINTWISE(Guarded_Quotient, iii, Guarded<::lockstep::functors::Quotient>)
LS_POINTWISE(Guarded_FlooredQuotient, iii, Guarded<::lockstep::functors::FlooredQuotient>)
