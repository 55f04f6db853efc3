#include "kernels/cpu/attention/forward.h"

#include "core/base/parallel.h"
#include "kernels/cpu/attention/factors.h"
#include "kernels/cpu/loss/exp_row.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kBlock = kAttentionBlock;
constexpr int64_t kGroup = 16;  // queries whose softmax is computed together, a vector's lanes
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Memory of one block of queries. Scores have a column for each query, so that a vector holds
/// neighbouring queries and no vector is summed across.
struct Room {
  float* turned_query;  ///< [width, kBlock]
  float* rows;          ///< keys or values
  float* pairs;         ///< values, as a product reads them
  float* scores;        ///< [kBlock keys, kBlock queries]
  float* out;           ///< [kBlock, width]
  alignas(64) float largest[kBlock];
  alignas(64) float sum[kBlock];
  alignas(64) float keep[kBlock];

  explicit Room(int64_t width) {
    Pieces pieces(thread_workspace(WorkspaceUse::kAttentionForward),
                  4 * kBlock * width + kBlock * kBlock);
    turned_query = pieces.take(kBlock * width);
    rows = pieces.take(kBlock * width);
    pairs = pieces.take(kBlock * width);
    out = pieces.take(kBlock * width);
    scores = pieces.take(kBlock * kBlock);
  }
};

/// scores[j, r] = scale scores[j, r] + mask, and -infinity where query r does not see key j.
inline void add_mask(const AttentionProblem& a, const ScoreBlock& block, float* scores) {
  const float* row = a.mask + block.b * a.mask_strides[0] + block.h * a.mask_strides[1] +
                     block.query * a.mask_strides[2] + block.key * a.mask_strides[3];
  for (int64_t r = 0; r < block.queries; ++r, row += a.mask_strides[2]) {
    for (int64_t j = 0; j < block.keys; ++j) {
      scores[j * kBlock + r] = a.scale * scores[j * kBlock + r] + row[j * a.mask_strides[3]];
    }
  }
}

/// Replaces the scores of the queries [first, first + kGroup) with the first `keys` keys by their
/// exponentials relative to the largest score so far, and adds these to the sums. `keep` becomes
/// the factor by which earlier sums shrink.
template <class P>
inline void soften(float* scores, int64_t keys, int64_t first, float scale, Room& room) {
  float* const column = scores + first;
  float* const largest = room.largest + first;
  float* const sum = room.sum + first;
  float* const keep = room.keep + first;
  float top[kGroup], shift[kGroup], part[kGroup];
  for (int64_t l = 0; l < kGroup; l += P::kLanes) {
    typename P::Lanes x, larger;
    P::load(larger, largest + l);
    for (int64_t j = 0; j < keys; ++j) {
      P::load(x, column + j * kBlock + l);
      P::scale_and_raise(x, scale, larger);
      P::store(column + j * kBlock + l, x);
    }
    P::store(top + l, larger);
  }
  for (int64_t l = 0; l < kGroup; ++l) {
    // A query that has seen nothing has only -inf: a shift by 0 gives exponentials of 0, not NaN.
    shift[l] = top[l] == -kInfinity ? 0.0F : top[l];
    keep[l] = exp_of_negative(largest[l] - shift[l]);
    largest[l] = top[l];
    part[l] = 0;
  }
  for (int64_t j = 0; j < keys; ++j) {
    float* x = column + j * kBlock;
    for (int64_t l = 0; l < kGroup; ++l) {
      x[l] = exp_of_negative(x[l] - shift[l]);
      part[l] += x[l];
    }
  }
  for (int64_t l = 0; l < kGroup; ++l) sum[l] = std::fma(sum[l], keep[l], part[l]);
}

template <class P>
inline void forward_keys(const AttentionForward& pass, const ScoreBlock& block, Room& room) {
  const AttentionProblem& a = pass.problem;
  const int64_t width = a.padded_width();
  const int64_t words = width / P::kPerWord;
  const int64_t groups = round_up(block.queries, kGroup);
  // In the block on the diagonal a key is not seen by the queries before it.
  const bool diagonal = a.causal && block.seen_by(0) < block.keys;
  const auto seen_by = [&](int64_t r) { return diagonal ? block.seen_by(r) : block.keys; };
  const int64_t key_head = block.h / a.heads_per_key();

  pass.key.read(block.b, key_head, block.key, block.keys, round_up(block.keys, kRowUnit), room.rows,
                width);
  const int64_t before = block.key - block.query;  // queries that do not see the block's first key
  multiply<P>({room.rows, words, 1, room.turned_query, kBlock, room.scores, kBlock},
              round_up(block.keys, kRowUnit), nullptr, [&](int64_t j) {
                const int64_t hidden = diagonal ? std::max<int64_t>(0, j + before) : 0;
                return Span{0, words, hidden / kGroup * kGroup, groups};
              });
  float scale = a.scale;
  if (a.mask != nullptr) {
    add_mask(a, block, room.scores);
    scale = 1;
  }
  for (int64_t j = 0; diagonal && j < block.keys; ++j) {
    const int64_t hidden = std::clamp<int64_t>(j + before, 0, groups);
    for (int64_t r = hidden / kGroup * kGroup; r < hidden; ++r) {
      room.scores[j * kBlock + r] = -kInfinity;
    }
  }
  for (int64_t first = 0; first < groups; first += kGroup) {
    const int64_t keys = seen_by(first + kGroup - 1);
    soften<P>(room.scores, keys, first, scale, room);
    if constexpr (P::kPerWord == 2) {
      float* const column = room.scores + first;
      if (keys % 2 != 0) std::fill_n(column + keys * kBlock, kGroup, 0.0F);
      for (int64_t j = 0; j < keys; j += 2) {
        P::store_pairs(column + j / 2 * kBlock, column + j * kBlock, column + (j + 1) * kBlock);
      }
    }
  }
  pass.value.read(block.b, key_head, block.key, block.keys, round_up(block.keys, 2), room.rows,
                  width);
  const float* values = summed_rows<P>(room.rows, width, block.keys, room.pairs);
  multiply<P>({room.scores, 1, kBlock, values, width, room.out, width},
              round_up(block.queries, kRowUnit), room.keep, [&](int64_t r) {
                return Span{0, steps<P>(seen_by(r + kRowUnit - 1)), 0, width};
              });
}

template <class P>
inline void forward_queries(const AttentionForward& pass, int64_t b, int64_t h, int64_t first) {
  const AttentionProblem& a = pass.problem;
  const int64_t count = std::min(kBlock, a.rows - first);
  const int64_t width = a.padded_width();
  Room room(width);
  pass.query.read(b, h, first, count, round_up(count, kGroup), room.rows, width);
  transpose_words(room.turned_query, room.rows, width / P::kPerWord, round_up(count, kGroup));
  std::fill_n(room.largest, kBlock, -kInfinity);
  std::fill_n(room.sum, kBlock, 0.0F);
  std::fill_n(room.out, kBlock * width, 0.0F);
  const int64_t keys = a.keys_before(first + count);
  for (int64_t key = 0; key < keys; key += kBlock) {
    forward_keys<P>(pass, {b, h, first, count, key, std::min(kBlock, keys - key)}, room);
  }
  for (int64_t r = 0; r < count; ++r) {
    const float sum = room.sum[r];
    const float inverse = sum == 0 ? 0.0F : 1.0F / sum;
    for (int64_t d = 0; d < width; ++d) room.out[r * width + d] *= inverse;
    const float shift = room.largest[r] == -kInfinity ? 0.0F : room.largest[r];
    pass.logsumexp[(b * a.heads + h) * a.rows + first + r] = shift + elementary::log(sum);
  }
  pass.out.write(b, h, first, count, room.out, width);
}

}  // namespace

void attention_forward(const AttentionForward& pass, bool in_bf16) {
  const AttentionProblem& a = pass.problem;
  parallel_for(0, a.batch * a.heads * a.query_blocks(), 1, [&](int64_t begin, int64_t end) {
    with_arithmetic(in_bf16, [&]<class P>() {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t head = i / a.query_blocks();
        forward_queries<P>(pass, head / a.heads, head % a.heads, i % a.query_blocks() * kBlock);
      }
    });
  });
}

}  // namespace lockstep::cpu
