#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/attention/head_rows.h"
#include "kernels/cpu/loss/exp_row.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

namespace {

/// Query rows that one task handles at a time, so that their scores against all keys stay in cache.
constexpr int64_t kBlockRows = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Sizes and options of one call, and the scores, which forward and backward both compute.
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
  int64_t block_rows() const { return std::min(kBlockRows, rows); }
  int64_t heads_per_key() const { return heads / key_heads; }
  /// Number of keys visible to the rows before `row`.
  int64_t keys_before(int64_t row) const { return causal ? std::min(columns, row) : columns; }

  /// scores[r, j] = scale q k + mask for the rows [first, first + count) in q and all keys visible
  /// to them.
  void score(float* scores, Rows q, Rows k, int64_t b, int64_t h, int64_t first,
             int64_t count) const {
    const int64_t keys = keys_before(first + count);
    gemm_block(false, true, count, keys, width, scale, q.data, q.ld, k.data, k.ld, 0.0F, scores,
               keys);
    if (mask == nullptr) return;
    const float* row = mask + b * mask_strides[0] + h * mask_strides[1] + first * mask_strides[2];
    for (int64_t r = 0; r < count; ++r, row += mask_strides[2], scores += keys) {
      for (int64_t j = 0; j < keys; ++j) scores[j] += row[j * mask_strides[3]];
    }
  }
};

/// x = exp(x - shift) for the first n elements and 0 for the masked keys in [n, end).
void exponentials(float* x, int64_t n, int64_t end, float shift) {
  exp_row(x, x, n, shift);
  std::fill(x + n, x + end, 0.0F);
}

/// Memory for f32 elements, uninitialised.
using Room = std::unique_ptr<float[]>;
Room room(int64_t elements) { return std::make_unique_for_overwrite<float[]>(elements); }

/// The rows of one key head, converted again only when another head is requested.
class KeyRows {
 public:
  KeyRows(const HeadReader& reader, int64_t columns)
      : reader_(reader), columns_(columns), room_(room(reader.scratch(columns))) {}

  Rows of(int64_t batch, int64_t head) {
    if (batch != batch_ || head != head_) {
      rows_ = reader_.rows(batch, head, 0, columns_, room_.get());
      batch_ = batch;
      head_ = head;
    }
    return rows_;
  }

 private:
  const HeadReader& reader_;
  int64_t columns_;
  Room room_;
  int64_t batch_ = -1;
  int64_t head_ = -1;
  Rows rows_{};
};

/// Arguments and results of the forward pass.
struct ForwardHeads {
  HeadReader q, k, v;
  HeadWriter out;
  float* logsumexp;
};

/// Per-thread memory of the forward pass.
struct ForwardRoom {
  KeyRows k, v;
  Room q, out, scores;

  ForwardRoom(const Attention& a, const ForwardHeads& t)
      : k(t.k, a.columns),
        v(t.v, a.columns),
        q(room(t.q.scratch(a.block_rows()))),
        out(room(t.out.scratch(a.block_rows()))),
        scores(room(a.block_rows() * a.columns)) {}
};

void forward_block(const Attention& a, const ForwardHeads& t, int64_t b, int64_t h, int64_t first,
                   ForwardRoom& room) {
  const int64_t count = std::min(kBlockRows, a.rows - first);
  const int64_t keys = a.keys_before(first + count);
  const int64_t key_head = h / a.heads_per_key();
  float* scores = room.scores.get();
  a.score(scores, t.q.rows(b, h, first, count, room.q.get()), room.k.of(b, key_head), b, h, first,
          count);
  float inverse[kBlockRows];
  for (int64_t r = 0; r < count; ++r) {
    float* row = scores + r * keys;
    const int64_t seen = a.keys_before(first + r + 1);
    const float largest = join_row<LargestOf<float>>(row, seen);
    // A fully masked row has only -inf: shifting by 0 makes its exponentials 0 instead of NaN.
    const float shift = largest == -kInfinity ? 0.0F : largest;
    exponentials(row, seen, keys, shift);
    const float sum = join_row<SumOf<float>>(row, seen);
    inverse[r] = sum == 0 ? 0.0F : 1.0F / sum;
    t.logsumexp[(b * a.heads + h) * a.rows + first + r] = shift + log_f32(sum);
  }
  float* const result = t.out.place(b, h, first, room.out.get());
  const int64_t ld = t.out.ld();
  const Rows v = room.v.of(b, key_head);
  gemm_block(false, false, count, a.width, keys, 1.0F, scores, keys, v.data, v.ld, 0.0F, result,
             ld);
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t d = 0; d < a.width; ++d) result[r * ld + d] *= inverse[r];
  }
  t.out.finish(b, h, first, count, result);
}

void forward(const Out& output, const Out& logsumexp, const In& query, const In& key,
             const In& value, double, bool is_causal, const In& attn_mask,
             std::optional<double> scale) {
  if (output.numel == 0) return;
  const Attention a(query, key, is_causal, attn_mask, scale);
  const ForwardHeads t{HeadReader(query), HeadReader(key), HeadReader(value), HeadWriter(output),
                       logsumexp.data<float>()};
  parallel_for(0, a.batch * a.heads * a.blocks(), 1, [&](int64_t begin, int64_t end) {
    ForwardRoom room(a, t);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / a.blocks();
      forward_block(a, t, head / a.heads, head % a.heads, i % a.blocks() * kBlockRows, room);
    }
  });
}

/// Arguments and results of the backward pass.
struct BackwardHeads {
  HeadReader grad_out, q, k, v;
  HeadWriter grad_q, grad_k, grad_v;
  const float* logsumexp;
};

/// Per-thread memory of the backward pass: a block of rows for grad_out, q and grad_q, a key head
/// for k to grad_v, a block of scores for p and ds, and one row of scores for products.
struct BackwardRoom {
  Room grad_out, q, grad_q;
  KeyRows k, v;
  Room grad_k, grad_v;
  Room p, ds, products;

  BackwardRoom(const Attention& a, const BackwardHeads& t)
      : grad_out(room(t.grad_out.scratch(a.block_rows()))),
        q(room(t.q.scratch(a.block_rows()))),
        grad_q(room(t.grad_q.scratch(a.block_rows()))),
        k(t.k, a.columns),
        v(t.v, a.columns),
        grad_k(room(t.grad_k.scratch(a.columns))),
        grad_v(room(t.grad_v.scratch(a.columns))),
        p(room(a.block_rows() * a.columns)),
        ds(room(a.block_rows() * a.columns)),
        products(room(a.columns)) {}
};

/// Adds the contribution of query rows [first, first + kBlockRows) of one head to grad_k and
/// grad_v, and writes their grad_q.
void backward_block(const Attention& a, const BackwardHeads& t, int64_t b, int64_t h, int64_t first,
                    BackwardRoom& room) {
  const int64_t count = std::min(kBlockRows, a.rows - first);
  const int64_t keys = a.keys_before(first + count);
  const int64_t key_head = h / a.heads_per_key();
  const Rows grad_out = t.grad_out.rows(b, h, first, count, room.grad_out.get());
  const Rows q = t.q.rows(b, h, first, count, room.q.get());
  const Rows k = room.k.of(b, key_head);
  const Rows v = room.v.of(b, key_head);
  float* const p = room.p.get();
  float* const ds = room.ds.get();
  float* const products = room.products.get();
  a.score(p, q, k, b, h, first, count);
  for (int64_t r = 0; r < count; ++r) {
    const float sum = t.logsumexp[(b * a.heads + h) * a.rows + first + r];
    float* row = p + r * keys;
    exponentials(row, a.keys_before(first + r + 1), keys, sum == -kInfinity ? 0.0F : sum);
    // Renormalise: the rounding error of a large logsumexp would be magnified by the exponential.
    const float total = join_row<SumOf<float>>(row, keys);
    const float inverse = total == 0 ? 0.0F : 1.0F / total;
    for (int64_t j = 0; j < keys; ++j) row[j] *= inverse;
  }
  gemm_block(true, false, keys, a.width, count, 1.0F, p, keys, grad_out.data, grad_out.ld, 1.0F,
             t.grad_v.place(b, key_head, 0, room.grad_v.get()), t.grad_v.ld());
  gemm_block(false, true, count, keys, a.width, 1.0F, grad_out.data, grad_out.ld, v.data, v.ld,
             0.0F, ds, keys);
  for (int64_t r = 0; r < count; ++r) {
    float* row = ds + r * keys;
    const float* weights = p + r * keys;
    // ds = p (dp - mean), with mean = sum(p dp). When one weight is close to 1, the mean nearly
    // equals that element, so the mean of the rounded differences is subtracted as well.
    // sum(grad_out * out) equals the mean mathematically, but is rounded differently.
    for (int64_t j = 0; j < keys; ++j) products[j] = weights[j] * row[j];
    const float mean = join_row<SumOf<float>>(products, keys);
    for (int64_t j = 0; j < keys; ++j) {
      row[j] -= mean;
      products[j] = weights[j] * row[j];
    }
    const float rest = join_row<SumOf<float>>(products, keys);
    for (int64_t j = 0; j < keys; ++j) row[j] = weights[j] * (row[j] - rest);
  }
  float* const grad_q = t.grad_q.place(b, h, first, room.grad_q.get());
  gemm_block(false, false, count, a.width, keys, a.scale, ds, keys, k.data, k.ld, 0.0F, grad_q,
             t.grad_q.ld());
  t.grad_q.finish(b, h, first, count, grad_q);
  gemm_block(true, false, keys, a.width, count, a.scale, ds, keys, q.data, q.ld, 1.0F,
             t.grad_k.place(b, key_head, 0, room.grad_k.get()), t.grad_k.ld());
}

/// Processes one key head with all query heads that share it, so that no sum spans tasks.
void backward_head(const Attention& a, const BackwardHeads& t, int64_t b, int64_t key_head,
                   BackwardRoom& room) {
  float* const grad_k = t.grad_k.place(b, key_head, 0, room.grad_k.get());
  float* const grad_v = t.grad_v.place(b, key_head, 0, room.grad_v.get());
  for (int64_t j = 0; j < a.columns; ++j) {
    std::fill_n(grad_k + j * t.grad_k.ld(), a.width, 0.0F);
    std::fill_n(grad_v + j * t.grad_v.ld(), a.width, 0.0F);
  }
  for (int64_t g = 0; g < a.heads_per_key(); ++g) {
    for (int64_t first = 0; first < a.rows; first += kBlockRows) {
      backward_block(a, t, b, key_head * a.heads_per_key() + g, first, room);
    }
  }
  t.grad_k.finish(b, key_head, 0, a.columns, grad_k);
  t.grad_v.finish(b, key_head, 0, a.columns, grad_v);
}

void backward(const Out& grad_query, const Out& grad_key, const Out& grad_value, const In& grad_out,
              const In& query, const In& key, const In& value, const In&, const In& logsumexp,
              double, bool is_causal, const In& attn_mask, std::optional<double> scale) {
  const Attention a(query, key, is_causal, attn_mask, scale);
  BackwardHeads t{HeadReader(grad_out),   HeadReader(query),      HeadReader(key),
                  HeadReader(value),      HeadWriter(grad_query), HeadWriter(grad_key),
                  HeadWriter(grad_value), logsumexp.data<float>()};
  Tensor packed;
  if (!logsumexp.contiguous) {
    packed = empty_tensor(logsumexp.sizes(), DType::kF32);
    float* to = packed.data<float>();
    for (int64_t i = 0; i < logsumexp.numel; ++i) {
      const int64_t row = i % a.rows;
      const int64_t head = i / a.rows;
      to[i] = t.logsumexp[head / a.heads * logsumexp.stride(0) +
                          head % a.heads * logsumexp.stride(1) + row * logsumexp.stride(2)];
    }
    t.logsumexp = to;
  }
  parallel_for(0, a.batch * a.key_heads, 1, [&](int64_t begin, int64_t end) {
    BackwardRoom room(a, t);
    for (int64_t i = begin; i < end; ++i) {
      backward_head(a, t, i / a.key_heads, i % a.key_heads, room);
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "_scaled_dot_product_flash_attention_for_cpu", forward, Strides::kAny);
LS_KERNEL(CPU, "_scaled_dot_product_flash_attention_for_cpu_backward", backward, Strides::kAny);

}  // namespace lockstep::cpu
