#include "kernels/cuda/reduce/simple_folds.cuh"

namespace lockstep::cuda {

// Partial products of floats can leave the range of f32, so all are computed in f64.
LS_REDUCTION(reduce_prod_floating, SimpleFold<ProductOf<double>>, AnyDType)
LS_REDUCTION(reduce_prod_int, SimpleFold<ProductOf<int64_t>>, AnyDType)

}  // namespace lockstep::cuda
