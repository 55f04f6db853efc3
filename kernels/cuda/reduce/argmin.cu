#include "kernels/cuda/reduce/take_fold.cuh"

namespace lockstep::cuda {

template <class C>
using Take = TakeFold<Smaller, C>;

LS_REDUCTION(argmin_f32, Take<float>, float)
LS_REDUCTION(argmin_half, Take<float>, AnyDType)
LS_REDUCTION(argmin_f64, Take<double>, double)
LS_REDUCTION(argmin_int, Take<int64_t>, AnyDType)

}  // namespace lockstep::cuda
