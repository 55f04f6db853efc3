#include "kernels/cuda/reduce/simple_folds.cuh"

namespace lockstep::cuda {

LS_REDUCTION(reduce_amax_f32, SimpleFold<LargestOf<float>>, float)
LS_REDUCTION(reduce_amax_bf16, SimpleFold<LargestOf<float>>, BFloat16)
LS_REDUCTION(reduce_amax_f16, SimpleFold<LargestOf<float>>, Half)
LS_REDUCTION(reduce_amax_f64, SimpleFold<LargestOf<double>>, double)
LS_REDUCTION(reduce_amax_int, SimpleFold<LargestOf<int64_t>>, AnyDType)

}  // namespace lockstep::cuda
