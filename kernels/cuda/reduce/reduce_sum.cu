#include "kernels/cuda/reduce/simple_folds.cuh"

namespace lockstep::cuda {

LS_PACKED_REDUCTION(reduce_sum_f32, SimpleFold<SumOf<float>>, float, 4)
LS_PACKED_REDUCTION(reduce_sum_bf16, SimpleFold<SumOf<float>>, BFloat16, 8)
LS_PACKED_REDUCTION(reduce_sum_f16, SimpleFold<SumOf<float>>, Half, 8)
LS_REDUCTION(reduce_sum_f64, SimpleFold<SumOf<double>>, double)
LS_REDUCTION(reduce_sum_int, SimpleFold<SumOf<int64_t>>, AnyDType)

}  // namespace lockstep::cuda
