#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Rules of matrix products and convolutions, named like their operators. One batched factor beside
// one that is not stays one product; two become a batched or a grouped one.

void mm(const Operator& op, uint64_t batched, Stack& stack);
void addmm(const Operator& op, uint64_t batched, Stack& stack);
void bmm(const Operator& op, uint64_t batched, Stack& stack);
void baddbmm(const Operator& op, uint64_t batched, Stack& stack);
void convolution(const Operator& op, uint64_t batched, Stack& stack);
void convolution_backward(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
