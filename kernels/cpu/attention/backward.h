#pragma once

#include "kernels/cpu/attention/head_rows.h"
#include "kernels/cpu/attention/problem.h"

namespace lockstep::cpu {

/// Arguments and results of the backward pass.
struct AttentionBackward {
  AttentionProblem problem;
  HeadReader query, key, value, grad_out;
  HeadReader wide_out, wide_grad_out;  ///< read as f32
  HeadWriter grad_query, grad_key, grad_value;
  const float* logsumexp;  ///< row-major [batch, heads, rows]
};

/// Computes the three gradients; scores are recomputed block by block.
void attention_backward(const AttentionBackward& pass, bool in_bf16);

}  // namespace lockstep::cpu
