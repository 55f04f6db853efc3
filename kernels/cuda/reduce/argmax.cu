#include "kernels/cuda/reduce/take_fold.cuh"

namespace lockstep::cuda {

template <class C>
using Take = TakeFold<Larger, C>;

LS_REDUCTION(argmax_f32, Take<float>, float)
LS_REDUCTION(argmax_half, Take<float>, AnyDType)
LS_REDUCTION(argmax_f64, Take<double>, double)
LS_REDUCTION(argmax_int, Take<int64_t>, AnyDType)

}  // namespace lockstep::cuda
