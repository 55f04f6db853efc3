#include "kernels/cuda/reduce/simple_folds.cuh"

namespace lockstep::cuda {

LS_REDUCTION(reduce_amin_f32, SimpleFold<SmallestOf<float>>, float)
LS_REDUCTION(reduce_amin_bf16, SimpleFold<SmallestOf<float>>, BFloat16)
LS_REDUCTION(reduce_amin_f16, SimpleFold<SmallestOf<float>>, Half)
LS_REDUCTION(reduce_amin_f64, SimpleFold<SmallestOf<double>>, double)
LS_REDUCTION(reduce_amin_int, SimpleFold<SmallestOf<int64_t>>, AnyDType)

}  // namespace lockstep::cuda
