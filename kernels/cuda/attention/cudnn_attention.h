#pragma once

#include "core/tensor/dtype.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/cudnn_graph.h"

namespace lockstep::cuda {

/// Queues the forward pass by cuDNN, which writes `out` and `logsumexp`, the logarithm of the sum
/// of exponentials of the scaled scores. logsumexp is the same as that of our kernels, so either
/// backward pass can follow either forward pass. Returns false, with nothing queued, if cuDNN
/// cannot compute it, which is counted for halves (core/device/slow_paths.h). Throws DeviceError.
bool attention_by_cudnn(const AttentionParams& params, DType dtype, int64_t batch);
/// Queues the backward pass by cuDNN, which writes `grad_query`, `grad_key` and `grad_value` and
/// reads `out`. Returns and throws like attention_by_cudnn.
bool attention_backward_by_cudnn(const AttentionParams& params, DType dtype, int64_t batch);

#ifdef LS_HAS_CUDNN

/// All properties by which cuDNN chooses an engine: the key of the plan cache. Equal problems use
/// equal plans for the lifetime of the process.
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
  Strides grad_out, grad_query, grad_key, grad_value;  ///< backward only

  auto operator<=>(const CudnnAttention&) const = default;
};

/// Tensor numbers of a problem's graph; -1 for those that the pass does not have.
struct CudnnAttentionTensors {
  int64_t query = -1, key = -1, value = -1, out = -1, logsumexp = -1;
  int64_t grad_out = -1, grad_query = -1, grad_key = -1, grad_value = -1;
  int64_t scale = -1, minus_infinity = -1, one = -1;
  int64_t row_sums = -1;  ///< one f32 per row, passed between its kernels
};

/// Adds the problem's tensors and operations to `graph`. Throws CudnnRefusal.
CudnnAttentionTensors describe_attention(CudnnGraph& graph, const CudnnAttention& problem);

/// Returns the cuDNN problem of a call, or nullopt if cuDNN, in the loaded version and on such a
/// GPU, does not support it: masks, f32, wide heads, unaligned memory.
std::optional<CudnnAttention> cudnn_attention(const AttentionParams& params, DType dtype,
                                              int64_t batch, bool backward);

/// How much of a backward pass is computed at a time, since its engine stores the score gradient: a
/// number of samples, or of heads of one sample. It depends on the sizes alone.
struct AttentionPart {
  int64_t samples, key_heads;
};
AttentionPart part_of_backward(const CudnnAttention& problem);

#endif

}  // namespace lockstep::cuda
