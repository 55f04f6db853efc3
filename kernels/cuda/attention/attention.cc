#include "kernels/cuda/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "core/dispatch/kernel.h"
#include "kernels/common/qkv_heads.h"
#include "kernels/cuda/attention/attention.fatbin.h"
#include "kernels/cuda/attention/cudnn_attention.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

/// The kernels of one pass, for head widths of up to 64 and of more.
struct AttentionKernels {
  DTypeKernels narrow, wide;
  explicit AttentionKernels(const std::string& direction)
      : narrow(kImage, "attention_" + direction + "_64", kDTypes),
        wide(kImage, "attention_" + direction + "_128", kDTypes) {}
  static constexpr std::initializer_list<DType> kDTypes = {DType::kF32, DType::kBF16, DType::kF16};
};
const AttentionKernels kForward("forward"), kQueries("queries"), kKeys("keys");

HeadTensor heads_of(const TensorArg& tensor) {
  HeadTensor heads{tensor.address, {}};
  std::ranges::copy(tensor.strides(), heads.strides);
  return heads;
}

AttentionParams params_of(const In& query, const In& key, const In& value, bool is_causal,
                          const In& attn_mask, std::optional<double> scale) {
  AttentionParams p{};
  p.query = heads_of(query);
  p.key = heads_of(key);
  p.value = heads_of(value);
  p.heads = query.size(1);
  p.key_heads = key.size(1);
  p.rows = query.size(2);
  p.keys = key.size(2);
  p.width = query.size(3);
  p.scale = static_cast<float>(scale.value_or(1.0 / std::sqrt(static_cast<double>(p.width))));
  p.causal = is_causal;
  if (!attn_mask.defined()) return p;
  p.mask.data = attn_mask.address;
  std::ranges::copy(broadcast_strides(attn_mask.sizes(), attn_mask.strides(),
                                      Dims{query.size(0), p.heads, p.rows, p.keys}),
                    p.mask.strides);
  return p;
}

/// Launches one block per 64 rows of each head of a result.
void launch_heads(const AttentionKernels& kernels, DType dtype, int64_t heads, int64_t rows,
                  const AttentionParams& p) {
  const int columns = attention_columns(p.width);
  const auto blocks = [](int64_t all, int64_t each) {
    return static_cast<unsigned>((all + each - 1) / each);
  };
  const unsigned tiles = static_cast<unsigned>(heads) * blocks(rows, AttentionParams::kRows);
  if (tiles == 0 || p.width == 0) return;
  launch((columns == 64 ? kernels.narrow : kernels.wide)[dtype],
         {.blocks = {tiles, blocks(p.width, columns), 1}, .threads = 256, .shared_bytes = 0}, p);
}

void forward(const Out& output, const Out& logsumexp, const In& query, const In& key,
             const In& value, double, bool is_causal, const In& attn_mask,
             std::optional<double> scale) {
  AttentionParams p = params_of(query, key, value, is_causal, attn_mask, scale);
  p.out = heads_of(output);
  p.logsumexp = heads_of(logsumexp);
  if (attention_by_cudnn(p, query.dtype, query.size(0))) return;
  launch_heads(kForward, query.dtype, query.size(0) * p.heads, p.rows, p);
}

void backward(const Out& grad_query, const Out& grad_key, const Out& grad_value, const In& grad_out,
              const In& query, const In& key, const In& value, const In& out, const In& logsumexp,
              double, bool is_causal, const In& attn_mask, std::optional<double> scale) {
  AttentionParams p = params_of(query, key, value, is_causal, attn_mask, scale);
  p.grad_out = heads_of(grad_out);
  p.grad_query = heads_of(grad_query);
  p.grad_key = heads_of(grad_key);
  p.grad_value = heads_of(grad_value);
  p.out = heads_of(out);
  p.logsumexp = heads_of(logsumexp);
  if (attention_backward_by_cudnn(p, query.dtype, query.size(0))) return;
  const Workspace row_sums(static_cast<size_t>(logsumexp.numel) * AttentionParams::kRowSums *
                           sizeof(float));
  p.row_sums = row_sums.data<float>();
  launch_heads(kQueries, query.dtype, query.size(0) * p.heads, p.rows, p);
  launch_heads(kKeys, query.dtype, query.size(0) * p.key_heads, p.keys, p);
}

}  // namespace

LS_KERNEL(CUDA, "_scaled_dot_product_flash_attention_for_cpu", forward, Strides::kAny);
LS_KERNEL(CUDA, "_scaled_dot_product_flash_attention_for_cpu_backward", backward, Strides::kAny);
LS_KERNEL(CUDA, "_flash_attention_of_qkv", forward_of_qkv<forward>, Strides::kAny);
LS_KERNEL(CUDA, "_flash_attention_of_qkv_backward", backward_of_qkv<backward>, Strides::kAny);

}  // namespace lockstep::cuda
