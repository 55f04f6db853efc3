#pragma once

#include "core/tensor/dtype.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/cudnn_graph.h"

namespace lockstep::cuda {

/// Queues the forward pass by cuDNN: `out` and `logsumexp`, which is the logarithm of the sum of
/// the exponentials of the scaled scores, the same as ours. Either backward pass follows either
/// forward pass. False, with nothing queued, where it has to be computed another way; with
/// LOCKSTEP_WARN_COPIES=1 standard error says once why. Throws DeviceError.
bool attention_by_cudnn(const AttentionParams& params, DType dtype, int64_t batch);
/// The same for the backward pass: `grad_query`, `grad_key` and `grad_value`. Needs `out`.
bool attention_backward_by_cudnn(const AttentionParams& params, DType dtype, int64_t batch);

#ifdef LS_HAS_CUDNN

/// Everything that cuDNN chooses an engine by. Equal ones have equal plans for as long as the
/// process lives.
struct CudnnAttention {
  struct Strides {
    int64_t at[4] = {};
    auto operator<=>(const Strides&) const = default;
  };

  DType dtype = DType::kBF16;
  bool backward = false;
  bool causal = false;
  int64_t batch = 0, heads = 0, key_heads = 0, rows = 0, keys = 0, width = 0;
  Strides query, key, value, out;
  Strides grad_out, grad_query, grad_key, grad_value;  ///< of the backward pass

  auto operator<=>(const CudnnAttention&) const = default;
};

/// The tensors of a problem's graph, -1 for those that the direction has not.
struct CudnnAttentionTensors {
  int64_t query = -1, key = -1, value = -1, out = -1, logsumexp = -1;
  int64_t grad_out = -1, grad_query = -1, grad_key = -1, grad_value = -1;
  int64_t scale = -1, minus_infinity = -1, one = -1;
  int64_t row_sums = -1;  ///< one f32 for each row, written and read between its kernels
};

/// Throws CudnnRefusal.
CudnnAttentionTensors describe_attention(CudnnGraph& graph, const CudnnAttention& problem);

/// The problem that a call is, or nothing where cuDNN has none of the kind, or not in the library's
/// version on such a GPU: masks, f32, wide heads, memory that is not aligned.
std::optional<CudnnAttention> cudnn_attention(const AttentionParams& params, DType dtype,
                                              int64_t batch, bool backward);

/// How much of a backward pass goes at once, since its engine stores the gradient of the scores:
/// samples, or heads of one sample. By sizes alone.
struct AttentionPart {
  int64_t samples, key_heads;
};
AttentionPart part_of_backward(const CudnnAttention& problem);

#endif

}  // namespace lockstep::cuda
