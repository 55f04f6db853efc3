// The branches of headers that nvcc alone takes, one to a kernel. Compiled to PTX, which
// tests/cuda/nvcc_branches_test.cc interprets.

#include "kernels/common/elementary.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/loss/max_sum.cuh"

namespace lockstep::cuda {

#define LS_BRANCH(name, In, Out, ...)                       \
  extern "C" __global__ void name(const In* in, Out* out) { \
    const In x = *in;                                       \
    *out = __VA_ARGS__;                                     \
  }

struct Two {
  float at[2];
};
using PackOfBF16 = Pack<BFloat16, 2>;
using PackOfHalf = Pack<Half, 2>;

LS_BRANCH(branch_float_to_bf16, float, uint16_t, float_to_bf16(x))
LS_BRANCH(branch_float_to_half, float, uint16_t, float_to_half(x))
LS_BRANCH(branch_half_to_float, uint16_t, float, half_to_float(x))
LS_BRANCH(branch_pair_to_bf16, Two, PackOfBF16, converted_pack<BFloat16, 2>(x.at))
LS_BRANCH(branch_pair_to_half, Two, PackOfHalf, converted_pack<Half, 2>(x.at))
LS_BRANCH(branch_exp_of_bf16, float, float, exp_for<BFloat16>(x))
LS_BRANCH(branch_exp, float, float, elementary::exp(x))
LS_BRANCH(branch_reciprocal, float, float, detail::reciprocal(x))
LS_BRANCH(branch_quotient, Two, float, elementary::quotient(x.at[0], x.at[1]))
LS_BRANCH(branch_tanh, float, float, elementary::tanh(x))
LS_BRANCH(branch_sigmoid, float, float, elementary::sigmoid(x))
LS_BRANCH(branch_normal, float, NormalDistribution<float>, normal_distribution(x))

}  // namespace lockstep::cuda
