#include "kernels/cpu/attention/backward.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "core/base/parallel.h"
#include "kernels/cpu/attention/factors.h"
#include "kernels/cpu/loss/exp_row.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kBlock = kAttentionBlock;
constexpr int64_t kGroup = 16;  // keys whose scores are computed together, a vector's lanes
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Memory of one block of keys and the block of queries that it meets. Scores have a row for each
/// query and a column for each key.
struct Room {
  float* turned_key;    ///< [width, kBlock]
  float* turned_value;  ///< [width, kBlock]
  float* key;
  float* key_pairs;
  float* query;
  float* query_pairs;
  float* grad_out;
  float* grad_out_pairs;
  float* value;
  float* weights;  ///< [kBlock queries, kBlock keys]: scores, then probabilities
  float* slopes;   ///< [kBlock queries, kBlock keys]: their gradients, then those of the scores
  float* slope_rows;
  float* grad_query;  ///< [kBlock, width]
  float* grad_key;    ///< [kBlock, width]
  float* grad_value;  ///< [kBlock, width]

  explicit Room(int64_t width) {
    Pieces pieces(thread_workspace(WorkspaceUse::kAttentionBackward),
                  12 * kBlock * width + 3 * kBlock * kBlock);
    for (float** rows : {&turned_key, &turned_value, &key, &key_pairs, &query, &query_pairs,
                         &grad_out, &grad_out_pairs, &value, &grad_query, &grad_key, &grad_value}) {
      *rows = pieces.take(kBlock * width);
    }
    for (float** scores : {&weights, &slopes, &slope_rows}) *scores = pieces.take(kBlock * kBlock);
  }
};

/// weights[j] = exp(scale weights[j] + mask - shift) for the keys that the query sees, else 0, and
/// slopes[j] = weights[j] (slopes[j] - mean), up to column `end`.
inline void soften_row(float* weights, float* slopes, const float* mask, int64_t mask_stride,
                       float scale, float shift, float mean, int64_t seen, int64_t end) {
  if (mask != nullptr) {
    for (int64_t j = 0; j < seen; ++j) weights[j] = scale * weights[j] + mask[j * mask_stride];
    scale = 1;
  }
  std::fill(weights + seen, weights + end, -kInfinity);
  for (int64_t j = 0; j < end; j += kGroup) {
    for (int64_t l = j; l < j + kGroup; ++l) {
      weights[l] = exp_of_negative(weights[l] * scale - shift);
      slopes[l] = weights[l] * (slopes[l] - mean);
    }
  }
}

/// What is known of the queries of one head while its blocks of keys are processed.
struct QuerySums {
  float* means;      ///< of each query: the gradients of its probabilities, weighted by these
  float* gradients;  ///< of the queries, rows `stride` elements apart, summed over keys so far
  int64_t stride;
};

/// The mean of a query's gradients of probabilities is the product of its output and the output's
/// gradient. Where one weight is 1 it has the bits of that key's gradient, so the difference is 0.
inline void find_means(const AttentionBackward& pass, int64_t b, int64_t h, float* means,
                       const Room& room) {
  const int64_t width = pass.problem.padded_width();
  for (int64_t first = 0; first < pass.problem.rows; first += kBlock) {
    const int64_t count = std::min(kBlock, pass.problem.rows - first);
    const int64_t rows = round_up(count, kRowUnit);
    pass.wide_out.read(b, h, first, count, rows, room.query, width);
    pass.wide_grad_out.read(b, h, first, count, rows, room.grad_out, width);
    row_products(means + first, room.query, room.grad_out, rows, width);
  }
}

/// Replaces the rows of the block's scores and gradients of probabilities by probabilities and
/// gradients of scores.
inline void soften(const AttentionBackward& pass, const ScoreBlock& block, const float* means,
                   const Room& room) {
  const AttentionProblem& a = pass.problem;
  const float* logsumexp = pass.logsumexp + (block.b * a.heads + block.h) * a.rows + block.query;
  const float* mask = nullptr;
  if (a.mask != nullptr) {
    mask = a.mask + block.b * a.mask_strides[0] + block.h * a.mask_strides[1] +
           block.query * a.mask_strides[2] + block.key * a.mask_strides[3];
  }
  for (int64_t r = 0; r < block.queries; ++r) {
    const int64_t seen = a.causal ? block.seen_by(r) : block.keys;
    const int64_t unit_seen = a.causal ? block.seen_by(r | (kRowUnit - 1)) : block.keys;
    // A query that sees nothing has a logarithm of -inf: shifting by 0 gives exponentials of 0.
    const float shift = logsumexp[r] == -kInfinity ? 0.0F : logsumexp[r];
    soften_row(room.weights + r * kBlock, room.slopes + r * kBlock,
               mask != nullptr ? mask + r * a.mask_strides[2] : nullptr,
               mask != nullptr ? a.mask_strides[3] : 0, a.scale, shift, means[block.query + r],
               seen, round_up(unit_seen, kGroup));
  }
}

/// Adds `count` rows of `from` times `scale` to those of a result, or starts it with them.
inline void add_rows(float* to, int64_t to_stride, const float* from, int64_t from_stride,
                     int64_t count, int64_t width, float scale, bool start) {
  for (int64_t r = 0; r < count; ++r, to += to_stride, from += from_stride) {
    if (start) {
      for (int64_t d = 0; d < width; ++d) to[d] = scale * from[d];
    } else {
      for (int64_t d = 0; d < width; ++d) to[d] = std::fma(scale, from[d], to[d]);
    }
  }
}

/// Factors by which a product keeps what its result holds: all of it.
constexpr std::array<float, kBlock> kAll = [] {
  std::array<float, kBlock> ones{};
  ones.fill(1);
  return ones;
}();

template <class P>
inline void backward_queries(const AttentionBackward& pass, const ScoreBlock& block,
                             const float* keys, const QuerySums& sums, const Room& room) {
  const AttentionProblem& a = pass.problem;
  const int64_t width = a.padded_width();
  const int64_t words = width / P::kPerWord;
  const int64_t rows = round_up(block.queries, kRowUnit);
  const auto read = [&](const HeadReader& reader, float* to) {
    reader.read(block.b, block.h, block.query, block.queries, rows, to, width);
  };
  read(pass.query, room.query);
  read(pass.grad_out, room.grad_out);

  // Columns of the scores that the queries [r, r + kRowUnit) see.
  const auto seen_by = [&](int64_t r) {
    return a.causal ? block.seen_by(r + kRowUnit - 1) : block.keys;
  };
  const auto scores = [&](int64_t r) { return Span{0, words, 0, round_up(seen_by(r), kGroup)}; };
  multiply<P>({room.query, words, 1, room.turned_key, kBlock, room.weights, kBlock}, rows, nullptr,
              scores);
  multiply<P>({room.grad_out, words, 1, room.turned_value, kBlock, room.slopes, kBlock}, rows,
              nullptr, scores);
  soften(pass, block, sums.means, room);

  const float* slope_rows = room.slopes;
  int64_t slope_row = kBlock;
  if constexpr (P::kPerWord == 2) {
    // Queries that do not exist add nothing to the last pair's gradients of keys and values.
    for (float* x : {room.weights, room.slopes}) {
      std::fill(x + block.queries * kBlock, x + round_up(block.queries, 2) * kBlock, 0.0F);
    }
    slope_rows = room.slope_rows;
    slope_row = kBlock / 2;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < kBlock; j += kGroup) {
        P::store_row(room.slope_rows + (r * kBlock + j) / 2, room.slopes + r * kBlock + j);
      }
    }
    for (int64_t r = 0; r < block.queries; r += 2) {
      for (int64_t j = 0; j < kBlock; j += kGroup) {
        for (float* x : {room.weights + j, room.slopes + j}) {
          P::store_pairs(x + r / 2 * kBlock, x + r * kBlock, x + (r + 1) * kBlock);
        }
      }
    }
  }
  // Queries that see the keys [j, j + kRowUnit): those from the diagonal on.
  const int64_t before = block.key - block.query;
  const auto seeing = [&](int64_t j) {
    const int64_t first = a.causal ? std::clamp<int64_t>(j + before, 0, block.queries) : 0;
    return Span{steps<P>(first), steps<P>(block.queries), 0, width};
  };
  const float* grads = summed_rows<P>(room.grad_out, width, block.queries, room.grad_out_pairs);
  const float* queries = summed_rows<P>(room.query, width, block.queries, room.query_pairs);
  const int64_t key_rows = round_up(block.keys, kRowUnit);
  multiply<P>({room.weights, 1, kBlock, grads, width, room.grad_value, width}, key_rows,
              kAll.data(), seeing);
  multiply<P>({room.slopes, 1, kBlock, queries, width, room.grad_key, width}, key_rows, kAll.data(),
              seeing);
  multiply<P>({slope_rows, slope_row, 1, keys, width, room.grad_query, width}, rows, nullptr,
              [&](int64_t r) {
                return Span{0, steps<P>(seen_by(r)), 0, width};
              });
  add_rows(sums.gradients + block.query * sums.stride, sums.stride, room.grad_query, width,
           block.queries, a.width, a.scale, block.key == 0);
}

/// Gradients of a block of keys and values, from all query heads that share them.
template <class P>
inline void backward_keys(const AttentionBackward& pass, int64_t b, int64_t key_head, int64_t key,
                          std::span<const QuerySums> sums, const Room& room) {
  const AttentionProblem& a = pass.problem;
  const int64_t width = a.padded_width();
  const int64_t words = width / P::kPerWord;
  const int64_t keys = std::min(kBlock, a.columns - key);
  const int64_t rows = round_up(keys, kGroup);
  pass.value.read(b, key_head, key, keys, rows, room.value, width);
  transpose_words(room.turned_value, room.value, words, rows);
  pass.key.read(b, key_head, key, keys, rows, room.key, width);
  transpose_words(room.turned_key, room.key, words, rows);
  const float* summed = summed_rows<P>(room.key, width, keys, room.key_pairs);
  std::fill_n(room.grad_key, kBlock * width, 0.0F);
  std::fill_n(room.grad_value, kBlock * width, 0.0F);
  for (int64_t g = 0; g < a.heads_per_key(); ++g) {
    for (int64_t query = a.causal ? key : 0; query < a.rows; query += kBlock) {
      const ScoreBlock block{
          b, key_head * a.heads_per_key() + g, query, std::min(kBlock, a.rows - query), key, keys};
      backward_queries<P>(pass, block, summed, sums[static_cast<size_t>(g)], room);
    }
  }
  for (int64_t i = 0; i < kBlock * width; ++i) room.grad_key[i] *= a.scale;
  pass.grad_key.write(b, key_head, key, keys, room.grad_key, width);
  pass.grad_value.write(b, key_head, key, keys, room.grad_value, width);
}

/// Memory of the query heads that share a key head. Only this depends on the number of queries: one
/// float for each, and a row of floats where their gradients have 16 bits.
class QueryRoom {
 public:
  explicit QueryRoom(const AttentionBackward& pass) : pass_(pass) {
    const AttentionProblem& a = pass.problem;
    const int64_t rows = round_up(a.rows, kRowUnit);
    const bool in_place = pass.grad_query.rows(0, 0) != nullptr;
    const int64_t each = rows * (in_place ? 1 : 1 + a.width);
    floats_ =
        std::make_unique_for_overwrite<float[]>(static_cast<size_t>(a.heads_per_key() * each));
    for (int64_t g = 0; g < a.heads_per_key(); ++g) {
      float* const means = floats_.get() + g * each;
      sums_.push_back({means, means + rows, in_place ? pass.grad_query.row_stride() : a.width});
    }
  }
  std::span<const QuerySums> start(int64_t b, int64_t key_head, const Room& room) {
    const AttentionProblem& a = pass_.problem;
    int64_t h = key_head * a.heads_per_key();
    for (QuerySums& sums : sums_) {
      if (float* in_place = pass_.grad_query.rows(b, h)) sums.gradients = in_place;
      find_means(pass_, b, h, sums.means, room);
      // Without keys no block starts the sums.
      for (int64_t r = 0; a.columns == 0 && r < a.rows; ++r) {
        std::fill_n(sums.gradients + r * sums.stride, a.width, 0.0F);
      }
      ++h;
    }
    return sums_;
  }
  void finish(int64_t b, int64_t key_head) const {
    const AttentionProblem& a = pass_.problem;
    int64_t h = key_head * a.heads_per_key();
    for (const QuerySums& sums : sums_) {
      if (pass_.grad_query.rows(b, h) == nullptr) {
        pass_.grad_query.write(b, h, 0, a.rows, sums.gradients, sums.stride);
      }
      ++h;
    }
  }

 private:
  const AttentionBackward& pass_;
  std::unique_ptr<float[]> floats_;
  std::vector<QuerySums> sums_;
};

/// Processes one key head with all query heads that share it, so that no sum spans tasks.
template <class P>
inline void backward_head(const AttentionBackward& pass, int64_t b, int64_t key_head,
                          QueryRoom& queries) {
  const Room room(pass.problem.padded_width());
  const std::span<const QuerySums> sums = queries.start(b, key_head, room);
  for (int64_t key = 0; key < pass.problem.columns; key += kBlock) {
    backward_keys<P>(pass, b, key_head, key, sums, room);
  }
  queries.finish(b, key_head);
}

}  // namespace

void attention_backward(const AttentionBackward& pass, bool in_bf16) {
  const AttentionProblem& a = pass.problem;
  parallel_for(0, a.batch * a.key_heads, 1, [&](int64_t begin, int64_t end) {
    QueryRoom queries(pass);
    with_arithmetic(in_bf16, [&]<class P>() {
      for (int64_t i = begin; i < end; ++i) {
        backward_head<P>(pass, i / a.key_heads, i % a.key_heads, queries);
      }
    });
  });
}

}  // namespace lockstep::cpu
