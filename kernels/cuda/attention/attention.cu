// Attention without storing its score matrix (Dao et al. 2022; Milakov & Gimpelshein 2018 for the
// online softmax). A block of 256 threads keeps a 64 x 64 tile of scores in registers, 4 x 4 per
// thread, and iterates over tiles of the other sequence. Everything is computed in f32; every sum
// has a fixed order.

#include <cmath>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

constexpr int kRows = AttentionParams::kRows;
constexpr int kThreads = 256;
constexpr int kDepth = 32;  // query and key elements multiplied at a time
constexpr int kPitch =
    kRows + 4;  // row pitch of tiles in shared memory: float4s, few bank conflicts
constexpr int kStage = 2 * kDepth * kPitch;
constexpr float kInfinity = INFINITY;

__device__ int row_thread() { return static_cast<int>(threadIdx.x) / 16; }
__device__ int column_thread() { return static_cast<int>(threadIdx.x) % 16; }

/// Up to 64 rows of one head.
template <class T>
struct TileRows {
  const T* data;
  int64_t row_stride, stride;
  int64_t count;

  __device__ TileRows(const HeadTensor& tensor, int64_t batch, int64_t head, int64_t first,
                      int64_t end)
      : data(static_cast<const T*>(tensor.data) + batch * tensor.strides[0] +
             head * tensor.strides[1] + first * tensor.strides[2]),
        row_stride(tensor.strides[2]),
        stride(tensor.strides[3]),
        count(end - first < kRows ? end - first : kRows) {}

  __device__ float at(int64_t row, int64_t column, int64_t width) const {
    return row < count && column < width ? convert<float>(data[row * row_stride + column * stride])
                                         : 0.0F;
  }
};

/// Stores rows [0, 64) and columns [first, first + kDepth) of the tile, transposed.
template <class T>
__device__ void stage_transposed(float* to, const TileRows<T>& rows, int64_t first, int64_t width) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  // Each warp stores eight columns of four rows: no two lanes use the same bank.
  for (int i = warp; i < kDepth * kRows / 32; i += kThreads / 32) {
    const int column = i % (kDepth / 8) * 8 + lane / 4;
    const int row = i / (kDepth / 8) * 4 + lane % 4;
    to[column * kPitch + row] = rows.at(row, first + column, width);
  }
}

/// out[i][j] = dot product of row 4 row_thread() + i of a and row 4 column_thread() + j of b.
template <class T>
__device__ void multiply(float (&out)[4][4], const TileRows<T>& a, const TileRows<T>& b,
                         int64_t width, float* stage) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) out[i][j] = 0;
  }
  for (int64_t first = 0; first < width; first += kDepth) {
    __syncthreads();
    stage_transposed(stage, a, first, width);
    stage_transposed(stage + kDepth * kPitch, b, first, width);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kDepth; ++k) {
      const float4 x = *reinterpret_cast<const float4*>(stage + k * kPitch + 4 * row_thread());
      const float4 y =
          *reinterpret_cast<const float4*>(stage + (kDepth + k) * kPitch + 4 * column_thread());
      const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) out[i][j] = std::fma(xs[i], ys[j], out[i][j]);
      }
    }
  }
}

/// Accumulates products with the rows of another tile, for 64 rows and kColumns columns per block
/// and 4 rows and kColumns / 16 columns per thread.
template <int kColumns>
struct Accumulator {
  static constexpr int kFours = kColumns / 64;
  float sums[4][4 * kFours];

  __device__ Accumulator() {
    for (auto& row : sums) {
      for (float& sum : row) sum = 0;
    }
  }
  /// First of the four adjacent columns of group `four`.
  static __device__ int column(int four) { return 64 * four + 4 * column_thread(); }

  /// sums[r] += sum over s of weights[r][s] rows[s]. Overwrites `shared` with the weights, so all
  /// threads must have finished reading it.
  template <class T>
  __device__ void add(const float (&weights)[4][4], const TileRows<T>& rows, int64_t first_column,
                      int64_t width, float* shared, float* stage) {
    for (int j = 0; j < 4; ++j) {
      *reinterpret_cast<float4*>(shared + (4 * column_thread() + j) * kPitch + 4 * row_thread()) = {
          weights[0][j], weights[1][j], weights[2][j], weights[3][j]};
    }
    constexpr int kChunk = 4096 / kColumns;  // rows that fit into the stage buffer
    static_assert(kChunk * kColumns <= kStage);
    for (int first = 0; first < rows.count; first += kChunk) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < kChunk * kColumns; i += kThreads) {
        stage[i] = rows.at(first + i / kColumns, first_column + i % kColumns, width);
      }
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k < kChunk; ++k) {
        const float4 x =
            *reinterpret_cast<const float4*>(shared + (first + k) * kPitch + 4 * row_thread());
        const float xs[4] = {x.x, x.y, x.z, x.w};
        for (int four = 0; four < kFours; ++four) {
          const float4 y = *reinterpret_cast<const float4*>(stage + k * kColumns + column(four));
          const float ys[4] = {y.x, y.y, y.z, y.w};
          for (int i = 0; i < 4; ++i) {
            for (int j = 0; j < 4; ++j) {
              sums[i][4 * four + j] = std::fma(xs[i], ys[j], sums[i][4 * four + j]);
            }
          }
        }
      }
    }
    __syncthreads();
  }

  /// Writes each row times its factor.
  template <class T>
  __device__ void store(const HeadTensor& tensor, int64_t batch, int64_t head, int64_t first,
                        int64_t end, int64_t first_column, int64_t width,
                        const float (&factor)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t row = first + 4 * row_thread() + i;
      if (row >= end) continue;
      T* to = static_cast<T*>(tensor.data) + batch * tensor.strides[0] + head * tensor.strides[1] +
              row * tensor.strides[2];
#pragma unroll
      for (int k = 0; k < 4 * kFours; ++k) {
        const int64_t at = first_column + column(k / 4) + k % 4;
        if (at < width) to[at * tensor.strides[3]] = convert<T>(sums[i][k] * factor[i]);
      }
    }
  }
};

/// Head and row tile of this block. The last tiles, which see the most keys if causal, start first.
struct Place {
  int64_t batch, head, first;

  __device__ Place(int64_t heads, int64_t rows) {
    const int64_t tiles = (rows + kRows - 1) / kRows;
    const int64_t block = blockIdx.x;
    first = (tiles - 1 - block % tiles) * kRows;
    head = block / tiles % heads;
    batch = block / tiles / heads;
  }
};

/// Number of keys visible to at least one query of the tile.
__device__ int64_t keys_seen(const AttentionParams& p, int64_t first_row) {
  return p.causal && first_row + kRows < p.keys ? first_row + kRows : p.keys;
}

/// Scaled and masked score of a query and a key from their product; -inf if either is out of range
/// or the key is not visible to the query.
__device__ float score_of(const AttentionParams& p, float product, int64_t batch, int64_t head,
                          int64_t row, int64_t key) {
  if (row >= p.rows || key >= p.keys || (p.causal && key > row)) return -kInfinity;
  float score = p.scale * product;
  if (p.mask.data != nullptr) {
    score += static_cast<const float*>(
        p.mask.data)[batch * p.mask.strides[0] + head * p.mask.strides[1] +
                     row * p.mask.strides[2] + key * p.mask.strides[3]];
  }
  return score;
}

/// Reduces over the 16 threads that share the columns of a row.
template <class C, class Join>
__device__ C over_columns(C value, Join join) {
  for (int step = 8; step > 0; step /= 2) value = join(value, __shfl_xor_sync(~0U, value, step));
  return value;
}
struct Larger {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};
struct Plus {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};

/// The shift subtracted from exponents: 0 for a row whose scores are all -inf, which makes its
/// exponentials 0 instead of NaN.
__device__ float finite_shift(float largest) { return largest == -kInfinity ? 0.0F : largest; }

__device__ float* logsumexp_at(const AttentionParams& p, int64_t batch, int64_t head, int64_t row) {
  return static_cast<float*>(p.logsumexp.data) + batch * p.logsumexp.strides[0] +
         head * p.logsumexp.strides[1] + row * p.logsumexp.strides[2];
}

template <class T, int kColumns>
__device__ void attention_forward(const AttentionParams& p) {
  __shared__ __align__(16) float stage[kStage];
  __shared__ __align__(16) float weights[kRows * kPitch];
  const Place place(p.heads, p.rows);
  const int64_t b = place.batch, h = place.head, key_head = h / (p.heads / p.key_heads);
  const int64_t first_column = static_cast<int64_t>(blockIdx.y) * kColumns;
  const TileRows<T> q(p.query, b, h, place.first, p.rows);
  Accumulator<kColumns> out;
  float largest[4], sum[4];
  for (int i = 0; i < 4; ++i) largest[i] = -kInfinity, sum[i] = 0;
  const int64_t seen = keys_seen(p, place.first);
  for (int64_t first = 0; first < seen; first += kRows) {
    float scores[4][4];
    multiply(scores, q, TileRows<T>(p.key, b, key_head, first, p.keys), p.width, stage);
    for (int i = 0; i < 4; ++i) {
      const int64_t row = place.first + 4 * row_thread() + i;
      float most = largest[i];
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = score_of(p, scores[i][j], b, h, row, first + 4 * column_thread() + j);
        most = Larger()(most, scores[i][j]);
      }
      most = over_columns(most, Larger());
      const float shift = finite_shift(most);
      const float shrink = std::exp(largest[i] - shift);
      largest[i] = most;
      float part = 0;
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = std::exp(scores[i][j] - shift);
        part += scores[i][j];
      }
      sum[i] = sum[i] * shrink + over_columns(part, Plus());
      for (float& element : out.sums[i]) element *= shrink;
    }
    out.add(scores, TileRows<T>(p.value, b, key_head, first, p.keys), first_column, p.width,
            weights, stage);
  }
  float inverse[4];
  for (int i = 0; i < 4; ++i) {
    inverse[i] = sum[i] == 0 ? 0.0F : 1.0F / sum[i];
    const int64_t row = place.first + 4 * row_thread() + i;
    if (row < p.rows && column_thread() == 0 && blockIdx.y == 0) {
      *logsumexp_at(p, b, h, row) = finite_shift(largest[i]) + std::log(sum[i]);
    }
  }
  out.template store<T>(p.out, b, h, place.first, p.rows, first_column, p.width, inverse);
}

/// Per-query values of the backward pass. With weights w and dp = grad_out . value, ds = w (dp -
/// mean), where mean = sum(w dp). When one weight is close to 1 the mean nearly equals that
/// element's dp, so the mean is computed in f64 and kept as mean + rest. The rounding error of a
/// large logsumexp would be magnified by the exponential, so the weights are renormalised by their
/// sum.
struct RowSums {
  float shift = 0, inverse = 0, mean = 0, rest = 0;

  __device__ float weight(float score) const { return std::exp(score - shift) * inverse; }
  __device__ float score_gradient(float weight, float dp) const {
    return weight * ((dp - mean) - rest);
  }
};

/// Row tiles of queries: computes grad_query, and `row_sums` for attention_keys.
template <class T, int kColumns>
__device__ void attention_queries(const AttentionParams& p) {
  __shared__ __align__(16) float stage[kStage];
  __shared__ __align__(16) float weights[kRows * kPitch];
  const Place place(p.heads, p.rows);
  const int64_t b = place.batch, h = place.head, key_head = h / (p.heads / p.key_heads);
  const int64_t first_column = static_cast<int64_t>(blockIdx.y) * kColumns;
  const TileRows<T> q(p.query, b, h, place.first, p.rows);
  const TileRows<T> g(p.grad_out, b, h, place.first, p.rows);
  const int64_t seen = keys_seen(p, place.first);
  const auto products = [&](int64_t first, float(&scores)[4][4], float(&dp)[4][4]) {
    multiply(scores, q, TileRows<T>(p.key, b, key_head, first, p.keys), p.width, stage);
    multiply(dp, g, TileRows<T>(p.value, b, key_head, first, p.keys), p.width, stage);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = score_of(p, scores[i][j], b, h, place.first + 4 * row_thread() + i,
                                first + 4 * column_thread() + j);
      }
    }
  };
  RowSums rows[4];
  double totals[4] = {}, means[4] = {};
  for (int i = 0; i < 4; ++i) {
    const int64_t row = place.first + 4 * row_thread() + i;
    if (row < p.rows) rows[i].shift = finite_shift(*logsumexp_at(p, b, h, row));
  }
  for (int64_t first = 0; first < seen; first += kRows) {
    float scores[4][4], dp[4][4];
    products(first, scores, dp);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const double weight = std::exp(scores[i][j] - rows[i].shift);
        totals[i] += weight;
        means[i] += weight * static_cast<double>(dp[i][j]);
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    const double total = over_columns(totals[i], Plus());
    double mean = over_columns(means[i], Plus());
    mean = total == 0 ? 0 : mean / total;
    rows[i].inverse = total == 0 ? 0.0F : static_cast<float>(1 / total);
    rows[i].mean = static_cast<float>(mean);
    rows[i].rest = static_cast<float>(mean - static_cast<double>(rows[i].mean));
    const int64_t row = place.first + 4 * row_thread() + i;
    if (row < p.rows && column_thread() == 0 && blockIdx.y == 0) {
      float* to = p.row_sums + ((b * p.heads + h) * p.rows + row) * AttentionParams::kRowSums;
      to[0] = rows[i].inverse;
      to[1] = rows[i].mean;
      to[2] = rows[i].rest;
    }
  }
  Accumulator<kColumns> grad;
  for (int64_t first = 0; first < seen; first += kRows) {
    float scores[4][4], dp[4][4];
    products(first, scores, dp);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = rows[i].score_gradient(rows[i].weight(scores[i][j]), dp[i][j]);
      }
    }
    grad.add(scores, TileRows<T>(p.key, b, key_head, first, p.keys), first_column, p.width, weights,
             stage);
  }
  const float scale[4] = {p.scale, p.scale, p.scale, p.scale};
  grad.template store<T>(p.grad_query, b, h, place.first, p.rows, first_column, p.width, scale);
}

/// Row tiles of keys: computes grad_key and grad_value over all queries of all heads that share the
/// keys.
template <class T, int kColumns>
__device__ void attention_keys(const AttentionParams& p) {
  __shared__ __align__(16) float stage[kStage];
  __shared__ __align__(16) float weights[kRows * kPitch];
  const Place place(p.key_heads, p.keys);
  const int64_t b = place.batch, group = p.heads / p.key_heads;
  const int64_t first_column = static_cast<int64_t>(blockIdx.y) * kColumns;
  const TileRows<T> k(p.key, b, place.head, place.first, p.keys);
  const TileRows<T> v(p.value, b, place.head, place.first, p.keys);
  Accumulator<kColumns> grad_key, grad_value;
  for (int64_t h = place.head * group; h < (place.head + 1) * group; ++h) {
    // Causal: the tile's keys are not visible to queries before its first key.
    for (int64_t first = p.causal ? place.first : 0; first < p.rows; first += kRows) {
      const TileRows<T> q(p.query, b, h, first, p.rows);
      const TileRows<T> g(p.grad_out, b, h, first, p.rows);
      float scores[4][4], dp[4][4];
      multiply(scores, k, q, p.width, stage);
      multiply(dp, v, g, p.width, stage);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int64_t row = first + 4 * column_thread() + j;
        RowSums sums;
        if (row < p.rows) {
          const float* from =
              p.row_sums + ((b * p.heads + h) * p.rows + row) * AttentionParams::kRowSums;
          sums = {finite_shift(*logsumexp_at(p, b, h, row)), from[0], from[1], from[2]};
        }
        for (int i = 0; i < 4; ++i) {
          const float weight =
              sums.weight(score_of(p, scores[i][j], b, h, row, place.first + 4 * row_thread() + i));
          dp[i][j] = sums.score_gradient(weight, dp[i][j]);
          scores[i][j] = weight;
        }
      }
      grad_value.add(scores, g, first_column, p.width, weights, stage);
      grad_key.add(dp, q, first_column, p.width, weights, stage);
    }
  }
  const float scale[4] = {p.scale, p.scale, p.scale, p.scale}, one[4] = {1, 1, 1, 1};
  grad_key.template store<T>(p.grad_key, b, place.head, place.first, p.keys, first_column, p.width,
                             scale);
  grad_value.template store<T>(p.grad_value, b, place.head, place.first, p.keys, first_column,
                               p.width, one);
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::cuda::AttentionParams;

#define LS_ATTENTION(direction, columns, T, suffix)                                    \
  LS_CUDA_KERNEL(attention_##direction##_##columns##_##suffix, AttentionParams, 256) { \
    lockstep::cuda::attention_##direction<T, columns>(p);                              \
  }
#define LS_ATTENTIONS(T, suffix)        \
  LS_ATTENTION(forward, 64, T, suffix)  \
  LS_ATTENTION(forward, 128, T, suffix) \
  LS_ATTENTION(queries, 64, T, suffix)  \
  LS_ATTENTION(queries, 128, T, suffix) \
  LS_ATTENTION(keys, 64, T, suffix)     \
  LS_ATTENTION(keys, 128, T, suffix)
LS_ATTENTIONS(float, f32)
LS_ATTENTIONS(Half, f16)
LS_ATTENTIONS(BFloat16, bf16)
