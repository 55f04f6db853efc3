#pragma once

#include "core/tensor/tensor.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// batch_norm (core/ops/norm/batch_norm.h) over the samples of all ranks. Each rank passes its part
/// of a batch, with any number of rows, and gets its part of what one rank with the whole batch
/// would compute, up to rounding: the result, the gradients and, in place, the running statistics.
/// Statistics are exchanged and combined in f64 (Chan, Golub & LeVeque 1979) and are bitwise equal
/// on all ranks. Gradients of weight and bias cover this rank's samples only: Ddp and Reducer add
/// them up. Without `training`, and if `group` is null or has one rank, it is batch_norm.
///
/// Operations of `group`: an all_gather in forward, then an all_reduce in backward if the input
/// requires a gradient. So all ranks must make the same calls in the same order, with inputs of
/// equally many channels that either all require a gradient or none do, and run the same backwards
/// of the same graphs. The group should serve nothing else (a subgroup of all ranks): the
/// gradients' buckets are sent during the same backward. It must outlive the graph.
///
/// An error on one rank (ShapeError and DTypeError as in batch_norm, for instance) ends the job's
/// groups, so that the other ranks throw as well and do not wait. Has no second derivative
/// (AutogradError).
Tensor sync_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                       OptionalTensor running_mean, OptionalTensor running_var, bool training,
                       double momentum, double eps, ProcessGroup* group);

}  // namespace lockstep::dist
