#pragma once

#include "kernels/cpu/attention/head_rows.h"
#include "kernels/cpu/attention/problem.h"

namespace lockstep::cpu {

/// Arguments and results of the forward pass.
struct AttentionForward {
  AttentionProblem problem;
  HeadReader query, key, value;
  HeadWriter out;
  float* logsumexp;  ///< row-major [batch, heads, rows]
};

/// Computes the output and the logarithms of the rows' sums of exponentials.
void attention_forward(const AttentionForward& pass, bool in_bf16);

}  // namespace lockstep::cpu
