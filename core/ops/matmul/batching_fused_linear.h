#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Rules of core/ops/matmul/fused_linear.cc, named like their operators. Under one weight a batch is
// more rows; with a weight for each sample they are what the operators stand for.

void linear_gelu(const Operator& op, uint64_t batched, Stack& stack);
void linear_add(const Operator& op, uint64_t batched, Stack& stack);
void linear_of_gelu(const Operator& op, uint64_t batched, Stack& stack);
void linear_of_gelu_backward(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
