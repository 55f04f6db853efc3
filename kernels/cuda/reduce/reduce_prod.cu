#include "kernels/cuda/reduce/simple_folds.cuh"

namespace lockstep::cuda {

// Products of floats leave the range of f32 on the way, so all are made in f64.
LS_REDUCTION(reduce_prod_floating, SimpleFold<ProductOf<double>>, AnyDType)
LS_REDUCTION(reduce_prod_int, SimpleFold<ProductOf<int64_t>>, AnyDType)

}  // namespace lockstep::cuda
