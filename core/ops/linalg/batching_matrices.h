#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

/// For operators on batches of matrices: the samples become one more dimension of the batch.
/// Results that the call leaves out, which have no elements, are the same for all samples.
void matrices(const Operator& op, uint64_t batched, Stack& stack);
/// For _linalg_solve_ex: the batches of a sample's two arguments broadcast.
void systems(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
