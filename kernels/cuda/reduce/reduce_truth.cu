#include "kernels/cuda/reduce/simple_folds.cuh"

namespace lockstep::cuda {

namespace {

struct Any {
  using Element = int32_t;
  __device__ static Element identity() { return 0; }
  __device__ static Element combine(Element a, Element b) { return a | b; }
};
struct All {
  using Element = int32_t;
  __device__ static Element identity() { return 1; }
  __device__ static Element combine(Element a, Element b) { return a & b; }
};

}  // namespace

LS_REDUCTION(reduce_any, SimpleFold<Any>, AnyTruth)
LS_REDUCTION(reduce_all, SimpleFold<All>, AnyTruth)

}  // namespace lockstep::cuda
