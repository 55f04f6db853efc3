#include "core/dispatch/kernel.h"
#include "kernels/common/qkv_heads.h"
#include "kernels/cpu/arithmetic.h"
#include "kernels/cpu/attention/backward.h"
#include "kernels/cpu/attention/forward.h"

namespace lockstep::cpu {

namespace {

/// Whether products of `dtype` are computed in it; others are computed in f32.
bool multiplies_bf16(DType dtype) { return dtype == DType::kBF16 && has_bf16_products(); }

ComputeLane lane_of(DType dtype) {
  return multiplies_bf16(dtype) ? ComputeLane::kBF16 : ComputeLane::kF32;
}

void forward(const Out& output, const Out& logsumexp, const In& query, const In& key,
             const In& value, double, bool is_causal, const In& attn_mask,
             std::optional<double> scale) {
  if (output.numel == 0) return;
  const ComputeLane lane = lane_of(query.dtype);
  attention_forward(
      {AttentionProblem(query, key, is_causal, attn_mask, scale), HeadReader(query, lane),
       HeadReader(key, lane), HeadReader(value, lane), HeadWriter(output), logsumexp.data<float>()},
      multiplies_bf16(query.dtype));
}

void backward(const Out& grad_query, const Out& grad_key, const Out& grad_value, const In& grad_out,
              const In& query, const In& key, const In& value, const In& out, const In& logsumexp,
              double, bool is_causal, const In& attn_mask, std::optional<double> scale) {
  const ComputeLane lane = lane_of(query.dtype);
  const auto reader = [lane](const In& in) { return HeadReader(in, lane); };
  AttentionBackward pass{AttentionProblem(query, key, is_causal, attn_mask, scale),
                         reader(query),
                         reader(key),
                         reader(value),
                         reader(grad_out),
                         HeadReader(out, ComputeLane::kF32),
                         HeadReader(grad_out, ComputeLane::kF32),
                         HeadWriter(grad_query),
                         HeadWriter(grad_key),
                         HeadWriter(grad_value),
                         logsumexp.data<float>()};
  const AttentionProblem& a = pass.problem;
  Tensor packed;
  if (!logsumexp.contiguous) {
    packed = empty_tensor(logsumexp.sizes(), DType::kF32);
    float* to = packed.data<float>();
    for (int64_t i = 0; i < logsumexp.numel; ++i) {
      const int64_t row = i % a.rows;
      const int64_t head = i / a.rows;
      to[i] = pass.logsumexp[head / a.heads * logsumexp.stride(0) +
                             head % a.heads * logsumexp.stride(1) + row * logsumexp.stride(2)];
    }
    pass.logsumexp = to;
  }
  attention_backward(pass, multiplies_bf16(query.dtype));
}

}  // namespace

LS_KERNEL(CPU, "_scaled_dot_product_flash_attention_for_cpu", forward, Strides::kAny);
LS_KERNEL(CPU, "_scaled_dot_product_flash_attention_for_cpu_backward", backward, Strides::kAny);
LS_KERNEL(CPU, "_flash_attention_of_qkv", forward_of_qkv<forward>, Strides::kAny);
LS_KERNEL(CPU, "_flash_attention_of_qkv_backward", backward_of_qkv<backward>, Strides::kAny);

}  // namespace lockstep::cpu
