#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Batching rules of cat and of operators that read or write at given indices, named like their
// operators. An index must be in the range of its own sample.

void cat(const Operator& op, uint64_t batched, Stack& stack);
void embedding(const Operator& op, uint64_t batched, Stack& stack);
void embedding_dense_backward(const Operator& op, uint64_t batched, Stack& stack);
/// Rule of gather and the scatters. All tensors have the same number of dimensions.
void gather(const Operator& op, uint64_t batched, Stack& stack);
void index_select(const Operator& op, uint64_t batched, Stack& stack);
/// Rule of index_add, index_copy and index_fill. With a batched index, index_add becomes
/// scatter_add; the others run once per sample.
void index_write(const Operator& op, uint64_t batched, Stack& stack);
void index(const Operator& op, uint64_t batched, Stack& stack);
void index_put(const Operator& op, uint64_t batched, Stack& stack);
/// Rule of tril and triu.
void triangle(const Operator& op, uint64_t batched, Stack& stack);
void constant_pad(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
