#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Batching rules of core/ops/matmul/fused_linear.cc and linear_of_parts.cc, named like their
// operators. With a shared weight the samples are more rows of one fused call; with one weight per
// sample the unfused operators run (bmm, add, gelu).

void linear_gelu(const Operator& op, uint64_t batched, Stack& stack);
void linear_add(const Operator& op, uint64_t batched, Stack& stack);
void linear_of_gelu(const Operator& op, uint64_t batched, Stack& stack);
void linear_of_gelu_backward(const Operator& op, uint64_t batched, Stack& stack);
void linear_parameters_backward(const Operator& op, uint64_t batched, Stack& stack);
void linear_of_parts(const Operator& op, uint64_t batched, Stack& stack);
void linear_of_parts_backward(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
