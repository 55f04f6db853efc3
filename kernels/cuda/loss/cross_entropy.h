#pragma once

#include "core/cuda/fault_kind.h"
#include "core/tensor/kernel_arguments.h"
#include "kernels/cuda/loss/loss.h"

namespace lockstep::cuda {

// Each queues one kernel for scores of `dtype`; no rows queue nothing, except for the total.
void queue_rows(DType dtype, const CrossEntropyRows& params);
void queue_total(DType dtype, const CrossEntropyTotal& params);
void queue_backward(DType dtype, const CrossEntropyBackward& params);
/// The argument of `read_index` for `target`, which holds classes or `ignore_index`.
IndexList class_list(const FaultKind& fault, const In& target, int64_t classes,
                     int64_t ignore_index);

}  // namespace lockstep::cuda
