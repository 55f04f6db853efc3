#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Rules of operators that join tensors, or read and write at places given by others; named like
// their operators. Indices stay checked sample by sample.

void cat(const Operator& op, uint64_t batched, Stack& stack);
void embedding(const Operator& op, uint64_t batched, Stack& stack);
void embedding_dense_backward(const Operator& op, uint64_t batched, Stack& stack);
/// gather and the scatters: all tensors have the same number of dimensions.
void gather(const Operator& op, uint64_t batched, Stack& stack);
void index_select(const Operator& op, uint64_t batched, Stack& stack);
/// index_add, index_copy and index_fill; an index that differs from sample to sample is added at
/// places of its own, or runs per sample.
void index_write(const Operator& op, uint64_t batched, Stack& stack);
void index(const Operator& op, uint64_t batched, Stack& stack);
void index_put(const Operator& op, uint64_t batched, Stack& stack);
/// tril and triu.
void triangle(const Operator& op, uint64_t batched, Stack& stack);
void constant_pad(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
