#include <cmath>

#include "kernels/cuda/norm/norm_vector.cuh"

namespace lockstep::cuda {

namespace {

/// One block per group of rows and 32 * kPack columns.
template <class T, int kPack>
__device__ void norm_parameters(const NormParameters& p) {
  using C = ComputeType<T>;
  const int64_t first = int64_t{blockIdx.x} * kWarpThreads * kPack;
  const int64_t column = first + lane_index() * kPack;
  const int64_t begin = int64_t{blockIdx.y} * p.group;
  const int64_t end = column < p.n ? (begin + p.group < p.rows ? begin + p.group : p.rows) : begin;
  C weight[kPack] = {}, bias[kPack] = {};
  for (int64_t row = begin + warp_index(); row < end; row += kNormRowThreads) {
    const NormStatistics<C> s = statistics_at<T>(p, row);
    C g[kPack], x[kPack];
    load_pack<kPack>(static_cast<const T*>(p.grad) + row * p.n + column, g);
    load_pack<kPack>(static_cast<const T*>(p.x) + row * p.n + column, x);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      weight[k] = std::fma(g[k], (x[k] - s.mean) * s.rstd, weight[k]);
      bias[k] += g[k];
    }
  }
  const int64_t to = int64_t{blockIdx.y} * p.n;
  if (p.partial_weight != nullptr) {
    write_columns<kPack>(static_cast<C*>(p.partial_weight) + to, first, p.n, weight);
  }
  if (p.partial_bias != nullptr) {
    write_columns<kPack>(static_cast<C*>(p.partial_bias) + to, first, p.n, bias);
  }
}

/// One block per 32 columns of each gradient.
template <class C>
__device__ void norm_join(const NormParametersJoin& p) {
  const int64_t first = int64_t{blockIdx.x} * kWarpThreads;
  const int64_t column = first + lane_index();
  const bool first_result = blockIdx.y == 0;
  const auto* const partial = static_cast<const C*>(first_result ? p.partial[0] : p.partial[1]);
  const NormVector result = first_result ? p.result[0] : p.result[1];
  double total = 0;
  for (int64_t i = warp_index(); i < p.groups && column < p.n; i += kNormRowThreads) {
    total += static_cast<double>(partial[i * p.n + column]);
  }
  __shared__ double shared[kNormRowThreads][kWarpThreads];
  shared[warp_index()][lane_index()] = total;
  __syncthreads();
  if (warp_index() != 0 || column >= p.n) return;
  total = shared[0][lane_index()];
  for (int row = 1; row < kNormRowThreads; ++row) total += shared[row][lane_index()];
  store_as(result.dtype, static_cast<char*>(result.data) + column * element_size(result.dtype),
           total);
}

}  // namespace

LS_ROW_KERNEL(norm_parameters_f32_packed, NormParameters, norm_parameters<float, 4>)
LS_ROW_KERNEL(norm_parameters_f32_scalar, NormParameters, norm_parameters<float, 1>)
LS_ROW_KERNEL(norm_parameters_bf16_packed, NormParameters, norm_parameters<BFloat16, 8>)
LS_ROW_KERNEL(norm_parameters_bf16_scalar, NormParameters, norm_parameters<BFloat16, 1>)
LS_ROW_KERNEL(norm_parameters_f16_packed, NormParameters, norm_parameters<Half, 8>)
LS_ROW_KERNEL(norm_parameters_f16_scalar, NormParameters, norm_parameters<Half, 1>)
LS_ROW_KERNEL(norm_parameters_f64_packed, NormParameters, norm_parameters<double, 2>)
LS_ROW_KERNEL(norm_parameters_f64_scalar, NormParameters, norm_parameters<double, 1>)
LS_ROW_KERNEL(norm_join_f32, NormParametersJoin, norm_join<float>)
LS_ROW_KERNEL(norm_join_f64, NormParametersJoin, norm_join<double>)

}  // namespace lockstep::cuda
