#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Batching rules of views, named like their operator or described below. Each makes a view of the
// whole batch, so that a write into a sample's view changes the batch.

void as_strided(const Operator& op, uint64_t batched, Stack& stack);
void expand(const Operator& op, uint64_t batched, Stack& stack);
void permute(const Operator& op, uint64_t batched, Stack& stack);
void squeeze_all(const Operator& op, uint64_t batched, Stack& stack);
void t(const Operator& op, uint64_t batched, Stack& stack);
void unfold(const Operator& op, uint64_t batched, Stack& stack);
void unsqueeze(const Operator& op, uint64_t batched, Stack& stack);
void view(const Operator& op, uint64_t batched, Stack& stack);
void view_dtype(const Operator& op, uint64_t batched, Stack& stack);
/// Rule of squeeze and transpose along dimensions; both return a 0-d sample unchanged.
void view_dims(const Operator& op, uint64_t batched, Stack& stack);
/// Rule of select, slice, split and the like. Throws for 0-d samples, which have no dimension to
/// take a part of.
void part(const Operator& op, uint64_t batched, Stack& stack);
/// Rule of new_zeros and the like; argument 1 is the result's size.
void new_sizes(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
