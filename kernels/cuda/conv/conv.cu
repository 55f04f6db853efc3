#include <cmath>

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/conv/conv.h"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/numbers.cuh"

namespace lockstep::cuda {

namespace {

constexpr int kDepth = 16;   // depth of the tiles in shared memory
constexpr int kTable = 128;  // depths whose places are computed at a time
constexpr int kThreads = 256;

/// Contribution of an index to the address and coordinates of an image element.
struct Place {
  int64_t base;
  int32_t at[3];
};

/// Place of index `i`; also returns its outer and inner part.
__device__ Place place_of(const ConvPlaces& places, int64_t i, int64_t& outer, int64_t& inner) {
  outer = places.outer.split(i, inner);
  int64_t rest, last;
  const int64_t first = places.plane.split(inner, rest);
  const int64_t second = places.line.split(rest, last);
  return {outer * places.outer_stride,
          {static_cast<int32_t>(first) * places.scale[0] + places.shift[0],
           static_cast<int32_t>(second) * places.scale[1] + places.shift[1],
           static_cast<int32_t>(last) * places.scale[2] + places.shift[2]}};
}

/// Offset of the element at the sum of two places, or -1 if it is outside the image.
template <bool kDivides>
__device__ int64_t offset_of(const Conv& p, const Place& a, const Place& b) {
  int64_t offset = 0;
  for (int d = 0; d < 3; ++d) {
    int32_t at = a.at[d] + b.at[d];
    if constexpr (kDivides) {
      if (at < 0) return -1;
      const int32_t quotient = at / p.divisor[d];
      if (quotient * p.divisor[d] != at) return -1;
      at = quotient;
    }
    if (at < 0 || at >= p.size[d]) return -1;
    offset = offset * p.size[d] + at;
  }
  return a.base + b.base + offset;
}

template <class C>
__device__ C multiply_add(C a, C b, C c) {
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) +
                          static_cast<uint64_t>(c));
  } else {
    return std::fma(a, b, c);
  }
}

/// Elements of dtype T, computed in C.
template <class T>
struct Elements {
  using C = ComputeType<T>;
  static __device__ C load(const Conv&, const void* data, int64_t i) {
    return convert<C>(static_cast<const T*>(data)[i]);
  }
  static __device__ void store(const Conv&, void* data, int64_t i, C value) {
    static_cast<T*>(data)[i] = convert<T>(value);
  }
};
/// Elements of any integer dtype; sums wrap around.
struct Integers {
  using C = int64_t;
  static __device__ C load(const Conv& p, const void* data, int64_t i) {
    return load_as<int64_t>(p.dtype, static_cast<const char*>(data) + i * element_size(p.dtype));
  }
  static __device__ void store(const Conv& p, void* data, int64_t i, C value) {
    store_as<int64_t>(p.dtype, static_cast<char*>(data) + i * element_size(p.dtype), value);
  }
};

/// Places of up to kTable depths, computed cooperatively by a block.
struct Depths {
  Place place[kTable];
  int64_t left[kTable];  ///< offset of the left matrix's element in the first row

  /// Computes the places of depths [first, end). Contains barriers: all threads must call it.
  __device__ void find(const Conv& p, int64_t group, int64_t first, int64_t end) {
    __syncthreads();
    const int i = static_cast<int>(threadIdx.x);
    if (i < kTable && first + i < end) {
      int64_t outer, inner;
      place[i] = place_of(p.depths_at, first + i, outer, inner);
      left[i] = group * p.left_group + outer * p.left_outer + inner;
    }
    __syncthreads();
  }
};

/// Place of a column of one group; unspecified (but valid) if `column` is out of range.
__device__ Place column_of(const Conv& p, int64_t group, int64_t column) {
  Place place{};
  int64_t outer, inner;
  if (column < p.columns) place = place_of(p.columns_at, column, outer, inner);
  place.base += group * p.right_group;
  return place;
}

/// Offset of a column's results in the first row of the first group.
__device__ int64_t out_offset(const Conv& p, int64_t column) {
  int64_t rest;
  const int64_t sample = p.out_outers.split(column, rest);
  return sample * p.out_outer + rest;
}
__device__ int64_t row_offset(const Conv& p, int64_t group, int64_t row) {
  return group * p.out_group + row * p.out_row;
}

template <class E>
__device__ typename E::C bias_of(const Conv& p, int64_t group, int64_t row) {
  return p.bias == nullptr ? typename E::C(0) : E::load(p, p.bias, group * p.rows + row);
}

/// One block computes kTile x kTile results of one group and part: blockIdx is {columns, rows,
/// group and part}. Each of its 256 threads computes 4 x 4 results of every 64 x 64.
template <class E, bool kDivides, int kTile>
__device__ void conv_product(const Conv& p) {
  using C = typename E::C;
  using Four = Pack<C, 4>;
  __shared__ Four left[kDepth][kTile / 4 + 1];
  __shared__ Four right[kDepth][kTile / 4];
  __shared__ Depths depths;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t group = blockIdx.z % p.groups, part = blockIdx.z / p.groups;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t end = (part + 1) * p.part < p.depth ? (part + 1) * p.part : p.depth;
  // This thread loads one column of `right`, and every 16th depth of `left`.
  const int my_column = thread % kTile, my_depth = thread % kDepth;
  const bool has_column = first_column + my_column < p.columns;
  const Place column = column_of(p, group, first_column + my_column);

  constexpr int kFours = kTile / 64;  // groups of four rows, and of four columns, per thread
  C sums[4 * kFours][4 * kFours] = {};
  for (int64_t first = part * p.part; first < end; first += kTable) {
    depths.find(p, group, first, end);
    for (int start = 0; start < kTable && first + start < end; start += kDepth) {
      const int count =
          static_cast<int>(end - first - start < kDepth ? end - first - start : kDepth);
      for (int i = thread / kDepth; i < kTile; i += kThreads / kDepth) {
        const bool there = my_depth < count && first_row + i < p.rows;
        left[my_depth][i / 4].at[i % 4] =
            there ? E::load(p, p.left, depths.left[start + my_depth] + (first_row + i) * p.left_row)
                  : C(0);
      }
      for (int i = thread / kTile; i < kDepth; i += kThreads / kTile) {
        int64_t offset = -1;
        if (i < count && has_column)
          offset = offset_of<kDivides>(p, depths.place[start + i], column);
        right[i][my_column / 4].at[my_column % 4] = offset < 0 ? C(0) : E::load(p, p.right, offset);
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        Four a[kFours], b[kFours];
        for (int f = 0; f < kFours; ++f) {
          a[f] = left[k][16 * f + thread / 16];
          b[f] = right[k][16 * f + thread % 16];
        }
        for (int i = 0; i < 4 * kFours; ++i) {
          for (int j = 0; j < 4 * kFours; ++j) {
            sums[i][j] = multiply_add(a[i / 4].at[i % 4], b[j / 4].at[j % 4], sums[i][j]);
          }
        }
      }
      __syncthreads();
    }
  }
  int64_t to[4 * kFours];  // offset of each column's results, or -1
#pragma unroll
  for (int j = 0; j < 4 * kFours; ++j) {
    const int64_t at = first_column + j / 4 * 64 + thread % 16 * 4 + j % 4;
    to[j] = at < p.columns ? out_offset(p, at) : -1;
  }
  C* const part_sums = static_cast<C*>(p.part_sums) + part * p.out_count;
#pragma unroll
  for (int i = 0; i < 4 * kFours; ++i) {
    const int64_t row = first_row + i / 4 * 64 + thread / 16 * 4 + i % 4;
    if (row >= p.rows) continue;
    const int64_t start = row_offset(p, group, row);
    const C bias = bias_of<E>(p, group, row);
#pragma unroll
    for (int j = 0; j < 4 * kFours; ++j) {
      if (to[j] < 0) continue;
      if (p.parts > 1) {
        part_sums[start + to[j]] = sums[i][j];
      } else {
        E::store(p, p.out, start + to[j], sums[i][j] + bias);
      }
    }
  }
}

/// One thread per result of a row: blockIdx is {columns, row, group}.
template <class E, bool kDivides>
__device__ void conv_row(const Conv& p) {
  __shared__ Depths depths;
  const int64_t row = blockIdx.y, group = blockIdx.z;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const Place column = column_of(p, group, at);
  typename E::C sum = 0;
  for (int64_t first = 0; first < p.depth; first += kTable) {
    depths.find(p, group, first, p.depth);
    const int count = static_cast<int>(p.depth - first < kTable ? p.depth - first : kTable);
    for (int k = 0; k < count; ++k) {
      const int64_t offset = at < p.columns ? offset_of<kDivides>(p, depths.place[k], column) : -1;
      if (offset < 0) continue;
      sum = multiply_add(E::load(p, p.left, depths.left[k] + row * p.left_row),
                         E::load(p, p.right, offset), sum);
    }
  }
  if (at >= p.columns) return;
  E::store(p, p.out, row_offset(p, group, row) + out_offset(p, at),
           sum + bias_of<E>(p, group, row));
}

/// One block per result, whose threads share the depth: blockIdx is {column, row, group}.
template <class E>
__device__ void conv_single(const Conv& p) {
  const int64_t row = blockIdx.y, group = blockIdx.z;
  const Place column = column_of(p, group, blockIdx.x);
  typename E::C sum = 0;
  for (int64_t i = threadIdx.x; i < p.depth; i += blockDim.x) {
    int64_t outer, inner;
    const int64_t offset = offset_of<false>(p, place_of(p.depths_at, i, outer, inner), column);
    if (offset < 0) continue;
    const int64_t left = group * p.left_group + outer * p.left_outer + inner + row * p.left_row;
    sum = multiply_add(E::load(p, p.left, left), E::load(p, p.right, offset), sum);
  }
  const double total = block_sum(static_cast<double>(sum));
  if (threadIdx.x == 0) {
    E::store(p, p.out, row_offset(p, group, row) + out_offset(p, blockIdx.x),
             static_cast<typename E::C>(total));
  }
}

/// Sums the parts in order.
template <class E>
__device__ void conv_join(const Conv& p) {
  using C = typename E::C;
  using Wide = std::conditional_t<std::is_integral_v<C>, uint64_t, double>;
  for (int64_t i = grid_thread(); i < p.out_count; i += grid_threads()) {
    Wide sum = 0;
    for (int64_t part = 0; part < p.parts; ++part) {
      sum += static_cast<Wide>(static_cast<const C*>(p.part_sums)[part * p.out_count + i]);
    }
    E::store(p, p.out, i, static_cast<C>(sum));
  }
}

template <class T>
__device__ void conv_bias(const ConvBias& p) {
  const int64_t feature = blockIdx.x;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * p.part;
  const int64_t end = first + p.part < p.per_feature ? first + p.part : p.per_feature;
  double sum = 0;
  for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
    int64_t place;
    const int64_t sample = p.places.split(i, place);
    sum += convert<double>(
        static_cast<const T*>(p.grad)[(sample * p.features + feature) * p.places.size + place]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) p.part_sums[feature * p.parts + blockIdx.y] = sum;
}

template <class T>
__device__ void conv_add_bias(const ConvAddBias& p) {
  T* const out = static_cast<T*>(p.out);
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    const T bias = static_cast<const T*>(p.bias)[p.channels.remainder(p.places.quotient(i))];
    out[i] = convert<T>(convert<float>(out[i]) + convert<float>(bias));
  }
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::cuda::Conv;
using lockstep::cuda::ConvAddBias;
using lockstep::cuda::ConvBias;

LS_CUDA_KERNEL(conv_bias_join, ConvBias, 256) {
  const int64_t feature = lockstep::cuda::grid_thread();
  if (feature >= p.features) return;
  double sum = 0;
  for (int64_t part = 0; part < p.parts; ++part) sum += p.part_sums[feature * p.parts + part];
  lockstep::cuda::store_number(p.out, feature, sum);
}

#define LS_CONV_TILE(E, tile, suffix)                                \
  LS_CUDA_KERNEL(conv_product_##tile##_##suffix, Conv, 256) {        \
    lockstep::cuda::conv_product<lockstep::cuda::E, false, tile>(p); \
  }                                                                  \
  LS_CUDA_KERNEL(conv_divided_##tile##_##suffix, Conv, 256) {        \
    lockstep::cuda::conv_product<lockstep::cuda::E, true, tile>(p);  \
  }
#define LS_CONV(E, suffix)    \
  LS_CONV_TILE(E, 64, suffix) \
  LS_CUDA_KERNEL(conv_join_##suffix, Conv, 256) { lockstep::cuda::conv_join<lockstep::cuda::E>(p); }
LS_CONV(Elements<float>, f32)
LS_CONV(Elements<double>, f64)
LS_CONV(Elements<Half>, f16)
LS_CONV(Elements<BFloat16>, bf16)
LS_CONV(Integers, integers)
LS_CONV_TILE(Elements<float>, 128, f32)
LS_CONV_TILE(Elements<Half>, 128, f16)
LS_CONV_TILE(Elements<BFloat16>, 128, bf16)

#define LS_CONV_ROWS(E, suffix)                            \
  LS_CUDA_KERNEL(conv_row_##suffix, Conv, 256) {           \
    lockstep::cuda::conv_row<lockstep::cuda::E, false>(p); \
  }                                                        \
  LS_CUDA_KERNEL(conv_row_divided_##suffix, Conv, 256) {   \
    lockstep::cuda::conv_row<lockstep::cuda::E, true>(p);  \
  }                                                        \
  LS_CUDA_KERNEL(conv_single_##suffix, Conv, 256) {        \
    lockstep::cuda::conv_single<lockstep::cuda::E>(p);     \
  }
LS_CONV_ROWS(Elements<float>, f32)
LS_CONV_ROWS(Elements<double>, f64)
LS_CONV_ROWS(Elements<Half>, f16)
LS_CONV_ROWS(Elements<BFloat16>, bf16)

#define LS_CONV_BIAS(T, suffix) \
  LS_CUDA_KERNEL(conv_bias_##suffix, ConvBias, 256) { lockstep::cuda::conv_bias<T>(p); }
LS_CONV_BIAS(float, f32)
LS_CONV_BIAS(double, f64)
LS_CONV_BIAS(Half, f16)
LS_CONV_BIAS(BFloat16, bf16)

#define LS_CONV_ADD_BIAS(T, suffix) \
  LS_CUDA_KERNEL(conv_add_bias_##suffix, ConvAddBias, 256) { lockstep::cuda::conv_add_bias<T>(p); }
LS_CONV_ADD_BIAS(float, f32)
LS_CONV_ADD_BIAS(Half, f16)
LS_CONV_ADD_BIAS(BFloat16, bf16)
