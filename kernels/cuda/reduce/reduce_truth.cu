#include "kernels/cuda/reduce/simple_folds.cuh"

namespace lockstep::cuda {

LS_REDUCTION(reduce_any, SimpleFold<AnyOf>, AnyTruth)
LS_REDUCTION(reduce_all, SimpleFold<AllOf>, AnyTruth)

}  // namespace lockstep::cuda
