#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/library.h"
#include "core/parallel.h"
#include "kernels/cpu/exp_row.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

namespace {

/// Query rows that one task handles at a time: their scores against all keys stay in the cache.
constexpr int64_t kBlockRows = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A [batch, heads, rows, columns] tensor whose rows are contiguous.
struct Heads {
  float* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t ld = 1;

  float* at(int64_t batch, int64_t head, int64_t row = 0) const {
    return data + batch * batch_stride + head * head_stride + row * ld;
  }
};

Heads heads_of(const TensorArg& t) {
  // The row stride is only a leading dimension: with a single row it may be anything.
  return {static_cast<float*>(t.address), t.stride(0), t.stride(1),
          std::max(t.stride(2), t.size(3))};
}

/// The same for an argument; one with other strides is copied into `copy` first.
Heads heads_of(const In& in, Tensor& copy) {
  const bool rows_apart = in.size(2) <= 1 || in.stride(2) >= in.size(3);
  if ((in.stride(3) == 1 || in.size(3) == 1) && rows_apart) return heads_of(in);
  copy = empty_tensor(in.sizes(), DType::kF32);
  float* to = copy.data<float>();
  for (int64_t b = 0; b < in.size(0); ++b) {
    for (int64_t h = 0; h < in.size(1); ++h) {
      for (int64_t t = 0; t < in.size(2); ++t) {
        const float* from =
            in.data<float>() + b * in.stride(0) + h * in.stride(1) + t * in.stride(2);
        for (int64_t d = 0; d < in.size(3); ++d) *to++ = from[d * in.stride(3)];
      }
    }
  }
  return heads_of(Out(*copy.impl()));
}

/// Sizes and options of one call, and the scores both directions compute.
struct Attention {
  int64_t batch;
  int64_t heads;
  int64_t key_heads;
  int64_t rows;     ///< queries per head
  int64_t columns;  ///< keys per head
  int64_t width;    ///< elements of a query or key
  float scale;
  bool causal;
  const float* mask = nullptr;
  Dims mask_strides;

  Attention(const In& query, const In& key, bool is_causal, const In& attn_mask,
            std::optional<double> given_scale)
      : batch(query.size(0)),
        heads(query.size(1)),
        key_heads(key.size(1)),
        rows(query.size(2)),
        columns(key.size(2)),
        width(query.size(3)),
        scale(
            static_cast<float>(given_scale.value_or(1.0 / std::sqrt(static_cast<double>(width))))),
        causal(is_causal) {
    if (attn_mask.defined()) {
      mask = attn_mask.data<float>();
      mask_strides =
          broadcast_strides(attn_mask.sizes(), attn_mask.strides(), {batch, heads, rows, columns});
    }
  }

  int64_t blocks() const { return (rows + kBlockRows - 1) / kBlockRows; }
  int64_t heads_per_key() const { return heads / key_heads; }
  /// Keys that some row before `row` sees.
  int64_t keys_before(int64_t row) const { return causal ? std::min(columns, row) : columns; }

  /// scores[r, j] for rows [first, first + count) and all keys they see: scale q k + mask.
  void score(float* scores, const Heads& q, const Heads& k, int64_t b, int64_t h, int64_t first,
             int64_t count) const {
    const int64_t keys = keys_before(first + count);
    gemm_block(false, true, count, keys, width, scale, q.at(b, h, first), q.ld,
               k.at(b, h / heads_per_key()), k.ld, 0.0F, scores, keys);
    if (mask == nullptr) return;
    const float* row = mask + b * mask_strides[0] + h * mask_strides[1] + first * mask_strides[2];
    for (int64_t r = 0; r < count; ++r, row += mask_strides[2], scores += keys) {
      for (int64_t j = 0; j < keys; ++j) scores[j] += row[j * mask_strides[3]];
    }
  }
};

/// x = exp(x - shift) for the first n; the rest up to `end` are keys this row does not see.
void exponentials(float* x, int64_t n, int64_t end, float shift) {
  exp_row(x, x, n, shift);
  std::fill(x + n, x + end, 0.0F);
}

void forward_block(const Attention& a, const Heads& q, const Heads& k, const Heads& v,
                   const Heads& out, float* logsumexp, int64_t b, int64_t h, int64_t first,
                   float* scores) {
  const int64_t count = std::min(kBlockRows, a.rows - first);
  const int64_t keys = a.keys_before(first + count);
  a.score(scores, q, k, b, h, first, count);
  float inverse[kBlockRows];
  for (int64_t r = 0; r < count; ++r) {
    float* row = scores + r * keys;
    const int64_t seen = a.keys_before(first + r + 1);
    const float largest = join_row<LargestOf<float>>(row, seen);
    // A row that sees nothing has only -inf: its exponentials are then all 0 instead of NaN.
    const float shift = largest == -kInfinity ? 0.0F : largest;
    exponentials(row, seen, keys, shift);
    const float sum = join_row<SumOf<float>>(row, seen);
    inverse[r] = sum == 0 ? 0.0F : 1.0F / sum;
    logsumexp[(b * a.heads + h) * a.rows + first + r] = shift + log_f32(sum);
  }
  float* result = out.at(b, h, first);
  gemm_block(false, false, count, a.width, keys, 1.0F, scores, keys, v.at(b, h / a.heads_per_key()),
             v.ld, 0.0F, result, out.ld);
  for (int64_t r = 0; r < count; ++r, result += out.ld) {
    for (int64_t d = 0; d < a.width; ++d) result[d] *= inverse[r];
  }
}

void forward(const Out& output, const Out& logsumexp, const In& query, const In& key,
             const In& value, double, bool is_causal, const In& attn_mask,
             std::optional<double> scale) {
  if (output.numel == 0) return;
  const Attention a(query, key, is_causal, attn_mask, scale);
  Tensor copies[3];
  const Heads q = heads_of(query, copies[0]);
  const Heads k = heads_of(key, copies[1]);
  const Heads v = heads_of(value, copies[2]);
  const Heads out = heads_of(output);
  parallel_for(0, a.batch * a.heads * a.blocks(), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scores(static_cast<size_t>(std::min(kBlockRows, a.rows) * a.columns));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / a.blocks();
      forward_block(a, q, k, v, out, logsumexp.data<float>(), head / a.heads, head % a.heads,
                    i % a.blocks() * kBlockRows, scores.data());
    }
  });
}

/// Arguments and results of the backward pass.
struct BackwardHeads {
  Heads grad_out, q, k, v, grad_q, grad_k, grad_v;
  const float* logsumexp;
};

/// Adds what query rows [first, first + kBlockRows) of one head contribute to grad_k and grad_v,
/// and writes their grad_q. Scratch: p and ds for a block of scores each, products for a row of
/// one.
void backward_block(const Attention& a, const BackwardHeads& t, int64_t b, int64_t h, int64_t first,
                    float* p, float* ds, float* products) {
  const int64_t count = std::min(kBlockRows, a.rows - first);
  const int64_t keys = a.keys_before(first + count);
  const int64_t key_head = h / a.heads_per_key();
  const float* grad_out = t.grad_out.at(b, h, first);
  a.score(p, t.q, t.k, b, h, first, count);
  for (int64_t r = 0; r < count; ++r) {
    const float sum = t.logsumexp[(b * a.heads + h) * a.rows + first + r];
    float* row = p + r * keys;
    exponentials(row, a.keys_before(first + r + 1), keys, sum == -kInfinity ? 0.0F : sum);
    // A large logsumexp is rounded by more than an exponential can bear.
    const float total = join_row<SumOf<float>>(row, keys);
    const float inverse = total == 0 ? 0.0F : 1.0F / total;
    for (int64_t j = 0; j < keys; ++j) row[j] *= inverse;
  }
  gemm_block(true, false, keys, a.width, count, 1.0F, p, keys, grad_out, t.grad_out.ld, 1.0F,
             t.grad_v.at(b, key_head), t.grad_v.ld);
  gemm_block(false, true, count, keys, a.width, 1.0F, grad_out, t.grad_out.ld, t.v.at(b, key_head),
             t.v.ld, 0.0F, ds, keys);
  for (int64_t r = 0; r < count; ++r) {
    float* row = ds + r * keys;
    const float* weights = p + r * keys;
    // ds = p (dp - mean). Where one weight is almost 1, the weighted mean almost equals that
    // element: its own mean takes away what rounding left of the difference. sum(grad_out * out) is
    // the same number, but rounded otherwise.
    for (int64_t j = 0; j < keys; ++j) products[j] = weights[j] * row[j];
    const float mean = join_row<SumOf<float>>(products, keys);
    for (int64_t j = 0; j < keys; ++j) {
      row[j] -= mean;
      products[j] = weights[j] * row[j];
    }
    const float rest = join_row<SumOf<float>>(products, keys);
    for (int64_t j = 0; j < keys; ++j) row[j] = weights[j] * (row[j] - rest);
  }
  gemm_block(false, false, count, a.width, keys, a.scale, ds, keys, t.k.at(b, key_head), t.k.ld,
             0.0F, t.grad_q.at(b, h, first), t.grad_q.ld);
  gemm_block(true, false, keys, a.width, count, a.scale, ds, keys, t.q.at(b, h, first), t.q.ld,
             1.0F, t.grad_k.at(b, key_head), t.grad_k.ld);
}

void backward(const Out& grad_query, const Out& grad_key, const Out& grad_value, const In& grad_out,
              const In& query, const In& key, const In& value, const In&, const In& logsumexp,
              double, bool is_causal, const In& attn_mask, std::optional<double> scale) {
  const Attention a(query, key, is_causal, attn_mask, scale);
  Tensor copies[5];
  BackwardHeads t{heads_of(grad_out, copies[0]), heads_of(query, copies[1]),
                  heads_of(key, copies[2]),      heads_of(value, copies[3]),
                  heads_of(grad_query),          heads_of(grad_key),
                  heads_of(grad_value),          logsumexp.data<float>()};
  if (!logsumexp.contiguous) {
    copies[4] = empty_tensor(logsumexp.sizes(), DType::kF32);
    float* to = copies[4].data<float>();
    for (int64_t i = 0; i < logsumexp.numel; ++i) {
      const int64_t row = i % a.rows;
      const int64_t head = i / a.rows;
      to[i] = t.logsumexp[head / a.heads * logsumexp.stride(0) +
                          head % a.heads * logsumexp.stride(1) + row * logsumexp.stride(2)];
    }
    t.logsumexp = to;
  }
  // One task owns a key head with all the query heads that share it: nothing is added across tasks.
  parallel_for(0, a.batch * a.key_heads, 1, [&](int64_t begin, int64_t end) {
    const size_t block = static_cast<size_t>(std::min(kBlockRows, a.rows) * a.columns);
    std::vector<float> p(block);
    std::vector<float> ds(block);
    std::vector<float> products(static_cast<size_t>(a.columns));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / a.key_heads;
      const int64_t key_head = i % a.key_heads;
      for (int64_t j = 0; j < a.columns; ++j) {
        std::fill_n(t.grad_k.at(b, key_head, j), a.width, 0.0F);
        std::fill_n(t.grad_v.at(b, key_head, j), a.width, 0.0F);
      }
      for (int64_t g = 0; g < a.heads_per_key(); ++g) {
        for (int64_t first = 0; first < a.rows; first += kBlockRows) {
          backward_block(a, t, b, key_head * a.heads_per_key() + g, first, p.data(), ds.data(),
                         products.data());
        }
      }
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "_scaled_dot_product_flash_attention_for_cpu", forward, Strides::kAny);
LS_KERNEL(CPU, "_scaled_dot_product_flash_attention_for_cpu_backward", backward, Strides::kAny);

}  // namespace lockstep::cpu
