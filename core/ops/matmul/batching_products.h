#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Batching rules of matrix products and convolutions, named like their operators. If one factor is
// batched the call stays one product; if both are it becomes a batched product or a grouped
// convolution.

void mm(const Operator& op, uint64_t batched, Stack& stack);
void addmm(const Operator& op, uint64_t batched, Stack& stack);
void bmm(const Operator& op, uint64_t batched, Stack& stack);
void baddbmm(const Operator& op, uint64_t batched, Stack& stack);
void convolution(const Operator& op, uint64_t batched, Stack& stack);
void convolution_backward(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
