// Softmax attention as cuDNN graphs, whose engines recognise the pattern: the products and the
// pointwise operations between them, one node each, without storing the scores.

#include "kernels/cuda/attention/cudnn_attention.h"

#include "kernels/cuda/cudnn_plans.h"

#ifdef LS_HAS_CUDNN

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/cuda/runtime.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

using Sizes = std::array<int64_t, 4>;

std::span<const int64_t> list(const CudnnAttention::Strides& strides) { return strides.at; }

/// Returns the strides with the last two dimensions swapped.
CudnnAttention::Strides turned(CudnnAttention::Strides strides) {
  std::swap(strides.at[2], strides.at[3]);
  return strides;
}

}  // namespace

CudnnAttentionTensors describe_attention(CudnnGraph& graph, const CudnnAttention& p) {
  CudnnAttentionTensors t;
  const cudnnDataType_t dtype = cudnn_data_type(p.dtype);
  constexpr cudnnDataType_t kWide = CUDNN_DATA_FLOAT;
  const Sizes of_queries{p.batch, p.heads, p.rows, p.width};
  const Sizes of_keys{p.batch, p.key_heads, p.keys, p.width};
  const Sizes of_turned_keys{p.batch, p.key_heads, p.width, p.keys};
  const Sizes of_scores{p.batch, p.heads, p.rows, p.keys};
  const Sizes of_turned_scores{p.batch, p.heads, p.keys, p.rows};
  const Sizes of_rows{p.batch, p.heads, p.rows, 1};
  const Sizes row_strides{p.heads * p.rows, p.rows, 1, 1};
  const auto scores = [&] { return graph.inner(kWide, of_scores); };

  t.query = graph.tensor(dtype, of_queries, list(p.query));
  t.key = graph.tensor(dtype, of_turned_keys, list(turned(p.key)));
  t.scale = graph.scalar();

  const auto masked = [&](int64_t from) {
    if (!p.causal) return from;
    const int64_t row = graph.inner(CUDNN_DATA_INT32, of_scores);
    const int64_t column = graph.inner(CUDNN_DATA_INT32, of_scores);
    const int64_t seen = graph.inner(CUDNN_DATA_BOOLEAN, of_scores);
    const int64_t result = scores();
    t.minus_infinity = graph.scalar();
    graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, {.x = from}, row, kWide, 2);
    graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, {.x = from}, column, kWide, 3);
    graph.pointwise(CUDNN_POINTWISE_CMP_GE, {.x = row, .b = column}, seen, CUDNN_DATA_BOOLEAN);
    graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, {.x = from, .b = t.minus_infinity, .t = seen},
                    result);
    return result;
  };

  if (!p.backward) {
    t.value = graph.tensor(dtype, of_keys, list(p.value));
    t.out = graph.tensor(dtype, of_queries, list(p.out));
    t.logsumexp = graph.tensor(kWide, of_rows, row_strides);
    const int64_t products = scores(), scaled = scores();
    graph.matmul(t.query, t.key, products);
    graph.pointwise(CUDNN_POINTWISE_MUL, {.x = products, .b = t.scale}, scaled);
    const int64_t score = masked(scaled);
    const int64_t largest = graph.inner(kWide, of_rows), shifted = scores(), weights = scores();
    const int64_t sum = graph.inner(kWide, of_rows), logarithm = graph.inner(kWide, of_rows);
    const int64_t probabilities = graph.inner(dtype, of_scores);
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, score, largest);
    graph.pointwise(CUDNN_POINTWISE_SUB, {.x = score, .b = largest}, shifted);
    graph.pointwise(CUDNN_POINTWISE_EXP, {.x = shifted}, weights);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, weights, sum);
    graph.pointwise(CUDNN_POINTWISE_LOG, {.x = sum}, logarithm);
    graph.pointwise(CUDNN_POINTWISE_ADD, {.x = largest, .b = logarithm}, t.logsumexp);
    graph.pointwise(CUDNN_POINTWISE_DIV, {.x = weights, .b = sum}, probabilities);
    graph.matmul(probabilities, t.value, t.out);
    return t;
  }

  t.value = graph.tensor(dtype, of_turned_keys, list(turned(p.value)));
  t.out = graph.tensor(dtype, of_queries, list(p.out));
  t.logsumexp = graph.tensor(kWide, of_rows, row_strides);
  t.grad_out = graph.tensor(dtype, of_queries, list(p.grad_out));
  t.grad_query = graph.tensor(dtype, of_queries, list(p.grad_query));
  t.grad_key = graph.tensor(dtype, of_keys, list(p.grad_key));
  t.grad_value = graph.tensor(dtype, of_keys, list(p.grad_value));
  t.row_sums = graph.tensor(kWide, of_rows, row_strides);
  t.one = graph.scalar();

  // row_sums = sum(grad_out out) = sum(P dP) along each row.
  const int64_t terms = graph.inner(kWide, of_queries), sums = graph.inner(kWide, of_rows);
  graph.pointwise(CUDNN_POINTWISE_MUL, {.x = t.grad_out, .b = t.out}, terms);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, terms, sums);
  graph.pointwise(CUDNN_POINTWISE_MUL, {.x = sums, .b = t.one}, t.row_sums);

  // P = exp(score - logsumexp).
  const int64_t products = scores(), scaled = scores(), shifted = scores();
  graph.matmul(t.query, t.key, products);
  graph.pointwise(CUDNN_POINTWISE_MUL, {.x = products, .b = t.scale}, scaled);
  graph.pointwise(CUDNN_POINTWISE_SUB, {.x = scaled, .b = t.logsumexp}, shifted);
  const int64_t exponents = masked(shifted);
  const int64_t weights = scores();
  graph.pointwise(CUDNN_POINTWISE_EXP, {.x = exponents}, weights);

  // Gradient of the keys or values, summed over the query heads that share a key head.
  const Sizes turned_strides{p.heads * p.rows * p.keys, p.rows * p.keys, 1, p.keys};
  const auto to_keys = [&](int64_t from, int64_t factor, int64_t result) {
    const int64_t other = graph.inner(dtype, of_turned_scores, turned_strides);
    graph.reshape(from, other);
    if (p.heads == p.key_heads) return graph.matmul(other, factor, result);
    const Sizes of_all_heads{p.batch, p.heads, p.keys, p.width};
    const int64_t all_heads = graph.inner(dtype, of_all_heads);
    graph.matmul(other, factor, all_heads);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, all_heads, result);
  };
  to_keys(weights, t.grad_out, t.grad_value);

  // dS = P (dP - row_sums) scale.
  const int64_t dp = scores(), centred = scores(), weighted = scores(), ds = scores();
  graph.matmul(t.grad_out, t.value, dp);
  graph.pointwise(CUDNN_POINTWISE_SUB, {.x = dp, .b = t.row_sums}, centred);
  graph.pointwise(CUDNN_POINTWISE_MUL, {.x = centred, .b = weights}, weighted);
  graph.pointwise(CUDNN_POINTWISE_MUL, {.x = weighted, .b = t.scale}, ds);
  to_keys(ds, t.query, t.grad_key);
  const int64_t keys = graph.inner(dtype, of_keys, list(p.key));
  graph.reshape(t.key, keys);
  // dQ is a separate product rather than a sum in memory, to which several blocks would add in any
  // order.
  graph.matmul(ds, keys, t.grad_query);
  return t;
}

namespace {

/// Limit on the memory of one part's score gradient. Engines with more than twice that are
/// rejected.
constexpr int64_t kPartBytes = int64_t{2} << 30;
/// Before this version the engines of the backward pass need the number of unmasked keys to be a
/// multiple of the tile (128).
constexpr size_t kTakesAnyKeys = 91501;

const char* pass_name(bool backward) { return backward ? "attention's gradients" : "attention"; }

/// The problem of a call that this library can take. If it is of halves and there is none, the
/// reason is counted; that of f32 is left to kernels of this project, which round nothing.
std::optional<CudnnAttention> problem_of(const AttentionParams& params, DType dtype, int64_t batch,
                                         bool backward) {
  std::optional<CudnnAttention> problem = cudnn_attention(params, dtype, batch, backward);
  const bool is_half = dtype == DType::kBF16 || dtype == DType::kF16;
  if (!problem && is_half && params.rows * params.keys > 1) {
    note_without_cudnn(
        pass_name(backward),
        params.mask.data != nullptr
            ? "a mask that is a tensor"
            : fmt::format("heads of width {}: expected a multiple of 8 up to 128, and "
                          "rows that begin at multiples of 16 bytes",
                          params.width));
  }
  if (problem && !has_cudnn()) problem.reset();
  return problem;
}

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

/// Returns normalised strides, or nullopt if the rows are not aligned to 16 bytes.
std::optional<CudnnAttention::Strides> aligned(const HeadTensor& tensor, const Sizes& sizes) {
  constexpr int64_t kElements = 8;
  if (!is_aligned(tensor.data)) return std::nullopt;
  CudnnAttention::Strides strides;
  int64_t whole = 1;
  for (size_t d = 0; d < 4; ++d) {
    if (sizes[d] > 1) whole = std::max(whole, sizes[d] * tensor.strides[d]);
  }
  for (size_t d = 0; d < 4; ++d) {
    // The stride of a dimension of size 1 is arbitrary.
    strides.at[d] = sizes[d] > 1 ? tensor.strides[d] : whole;
    if (d < 3 && (strides.at[d] <= 0 || strides.at[d] % kElements != 0)) return std::nullopt;
  }
  if (strides.at[3] != 1) return std::nullopt;
  return strides;
}

bool is_packed(const HeadTensor& rows, int64_t batch, int64_t heads, int64_t count) {
  return (batch == 1 || rows.strides[0] == heads * count) &&
         (heads == 1 || rows.strides[1] == count) && (count == 1 || rows.strides[2] == 1);
}

using Plans = CudnnPlans<CudnnAttention, CudnnAttentionTensors>;
Plans& plans() {
  static auto* const instance = new Plans(&describe_attention);
  return *instance;
}

/// Address `elements` elements of `width` bytes past the tensor's start.
const void* ahead(const HeadTensor& tensor, int64_t elements, int64_t width) {
  return static_cast<const char*>(tensor.data) + elements * width;
}

/// Runs one part: the samples from `batch` and the heads from `key_head` of the call `from`, with
/// the sizes of `p`. Returns false, with nothing queued, if there is no plan.
bool run_part(const CudnnCall& call, const CudnnAttention& p, const AttentionParams& from,
              int64_t batch, int64_t key_head) {
  bool done = false;
  const std::string reason = cudnn().with_handle(call.device, [&](cudnnHandle_t handle) {
    const Plans::Planned planned = plans().find_or_make(cudnn(), call.device, handle, p, {});
    if (planned->plan == nullptr) {
      note_without_cudnn(pass_name(p.backward), planned->refusal);
      return;
    }
    const CudnnAttentionTensors& t = planned->tensors;
    const int64_t head = key_head * (p.heads / p.key_heads);
    const auto of_queries = [&](const HeadTensor& tensor) {
      return ahead(tensor, batch * tensor.strides[0] + head * tensor.strides[1], 2);
    };
    const auto of_keys = [&](const HeadTensor& tensor) {
      return ahead(tensor, batch * tensor.strides[0] + key_head * tensor.strides[1], 2);
    };
    constexpr float kOne = 1, kMinusInfinity = -std::numeric_limits<float>::infinity();
    CudnnMemory memory;
    memory.put(t.query, of_queries(from.query));
    memory.put(t.key, of_keys(from.key));
    memory.put(t.value, of_keys(from.value));
    memory.put(t.out, of_queries(from.out));
    memory.put(t.logsumexp, ahead(from.logsumexp, (batch * from.heads + head) * p.rows, 4));
    memory.put(t.grad_out, of_queries(from.grad_out));
    memory.put(t.grad_query, of_queries(from.grad_query));
    memory.put(t.grad_key, of_keys(from.grad_key));
    memory.put(t.grad_value, of_keys(from.grad_value));
    memory.put(t.scale, &from.scale);
    memory.put(t.one, &kOne);
    memory.put(t.minus_infinity, &kMinusInfinity);
    const size_t sums = p.backward ? static_cast<size_t>(p.batch * p.heads * p.rows) * 4 : 0;
    const Workspace row_sums(sums);
    memory.put(t.row_sums, row_sums.data());
    const Workspace workspace(planned->plan->workspace());
    CudnnLibrary& library = cudnn();
    library.check(library.loaded().functions.cudnnSetStream(handle, call.stream), "cudnnSetStream");
    planned->plan->run(library, handle, memory.uids(), memory.addresses(), workspace.data());
    done = true;
  });
  if (!reason.empty()) note_without_cudnn(pass_name(p.backward), reason);
  return done;
}

}  // namespace

std::optional<CudnnAttention> cudnn_attention(const AttentionParams& params, DType dtype,
                                              int64_t batch, bool backward) {
  constexpr int64_t kWidest = 128;
  const bool takes = (dtype == DType::kBF16 || dtype == DType::kF16) &&
                     params.mask.data == nullptr && params.width % 8 == 0 &&
                     params.width <= kWidest && batch > 0 && params.heads > 0 && params.width > 0 &&
                     params.rows > 0 && params.keys > 0 && params.rows * params.keys > 1 &&
                     is_packed(params.logsumexp, batch, params.heads, params.rows) &&
                     is_aligned(params.logsumexp.data);
  if (!takes) return std::nullopt;
  CudnnAttention p;
  p.dtype = dtype;
  p.backward = backward;
  p.causal = params.causal;
  p.batch = batch;
  p.heads = params.heads;
  p.key_heads = params.key_heads;
  p.rows = params.rows;
  p.keys = params.keys;
  p.width = params.width;
  const Sizes of_queries{batch, p.heads, p.rows, p.width};
  const Sizes of_keys{batch, p.key_heads, p.keys, p.width};
  bool fits = true;
  const auto keep = [&](CudnnAttention::Strides& to, const HeadTensor& tensor, const Sizes& sizes) {
    const std::optional<CudnnAttention::Strides> strides = aligned(tensor, sizes);
    fits = fits && strides;
    if (strides) to = *strides;
  };
  keep(p.query, params.query, of_queries);
  keep(p.key, params.key, of_keys);
  keep(p.value, params.value, of_keys);
  keep(p.out, params.out, of_queries);
  if (backward) {
    keep(p.grad_out, params.grad_out, of_queries);
    keep(p.grad_query, params.grad_query, of_queries);
    keep(p.grad_key, params.grad_key, of_keys);
    keep(p.grad_value, params.grad_value, of_keys);
  }
  if (!fits) return std::nullopt;
  return p;
}

AttentionPart part_of_backward(const CudnnAttention& p) {
  const auto whole = [](int64_t count) { return (count + 63) / 64 * 64; };
  const int64_t of_key_head = p.heads / p.key_heads * whole(p.rows) * whole(p.keys) * 2;
  const int64_t key_heads = std::clamp<int64_t>(kPartBytes / of_key_head, 1, p.key_heads);
  if (key_heads < p.key_heads) return {.samples = 1, .key_heads = key_heads};
  return {.samples = std::clamp<int64_t>(kPartBytes / (of_key_head * p.key_heads), 1, p.batch),
          .key_heads = p.key_heads};
}

bool attention_by_cudnn(const AttentionParams& params, DType dtype, int64_t batch) {
  const std::optional<CudnnAttention> problem = problem_of(params, dtype, batch, false);
  if (!problem) return false;
  const CudnnCall call;
  const ContextGuard guard(call.context);
  return run_part(call, *problem, params, 0, 0);
}

bool attention_backward_by_cudnn(const AttentionParams& params, DType dtype, int64_t batch) {
  const std::optional<CudnnAttention> problem = problem_of(params, dtype, batch, true);
  if (!problem) return false;
  const auto refuse = [](const std::string& why) {
    note_without_cudnn(pass_name(true), why);
    return false;
  };
  if (problem->keys % 128 != 0 && cudnn().loaded().version < kTakesAnyKeys) {
    return refuse(
        fmt::format("a number of keys that is no multiple of 128: expected cuDNN {} or "
                    "newer",
                    version_text(kTakesAnyKeys)));
  }
  const CudnnCall call;
  // Only on Hopper does storing the score gradient suffice for deterministic results.
  constexpr int kHopper = 9;
  if (call.capability != kHopper) {
    return refuse(fmt::format("its repeatable engine is for compute capability {}, not {}", kHopper,
                              call.capability));
  }
  const ContextGuard guard(call.context);
  const AttentionPart size = part_of_backward(*problem);
  const bool is_whole = size.samples >= batch && size.key_heads >= params.key_heads;
  // cuDNN requires the logsumexp rows of each part to be aligned to 16 bytes.
  if (!is_whole && params.rows % 4 != 0) {
    return refuse("a number of queries that is no multiple of 4, in parts");
  }
  const int64_t group = problem->heads / problem->key_heads;
  for (int64_t batch_at = 0; batch_at < batch; batch_at += size.samples) {
    for (int64_t head_at = 0; head_at < params.key_heads; head_at += size.key_heads) {
      CudnnAttention part = *problem;
      part.batch = std::min(size.samples, batch - batch_at);
      part.key_heads = std::min(size.key_heads, params.key_heads - head_at);
      part.heads = part.key_heads * group;
      // If only a smaller last part has no plan, our kernels recompute everything.
      if (!run_part(call, part, params, batch_at, head_at)) return false;
    }
  }
  return true;
}

}  // namespace lockstep::cuda

#else  // without cuDNN's header

namespace lockstep::cuda {

namespace {
bool not_built_in(DType dtype) {
  if (dtype == DType::kBF16 || dtype == DType::kF16) {
    note_without_cudnn("attention", "this build found no cudnn_graph.h");
  }
  return false;
}
}  // namespace

bool attention_by_cudnn(const AttentionParams&, DType dtype, int64_t) {
  return not_built_in(dtype);
}
bool attention_backward_by_cudnn(const AttentionParams&, DType dtype, int64_t) {
  return not_built_in(dtype);
}

}  // namespace lockstep::cuda

#endif
