#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Rules of views, named like their operators where there is one for each. The whole's view is made,
// so what is written into a sample's view reaches the batch.

void as_strided(const Operator& op, uint64_t batched, Stack& stack);
void expand(const Operator& op, uint64_t batched, Stack& stack);
void permute(const Operator& op, uint64_t batched, Stack& stack);
void squeeze_all(const Operator& op, uint64_t batched, Stack& stack);
void t(const Operator& op, uint64_t batched, Stack& stack);
void unfold(const Operator& op, uint64_t batched, Stack& stack);
void unsqueeze(const Operator& op, uint64_t batched, Stack& stack);
void view(const Operator& op, uint64_t batched, Stack& stack);
void view_dtype(const Operator& op, uint64_t batched, Stack& stack);
/// squeeze and transpose, which leave 0-d tensors as they are.
void view_dims(const Operator& op, uint64_t batched, Stack& stack);
/// select, slice, split, ...: a 0-d tensor has no parts.
void part(const Operator& op, uint64_t batched, Stack& stack);
/// new_zeros and its like, whose argument 1 is the result's size.
void new_sizes(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
