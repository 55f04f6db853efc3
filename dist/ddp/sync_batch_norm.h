#pragma once

#include "core/tensor/tensor.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// batch_norm (core/ops/norm/batch_norm.h) over the samples of all ranks: each passes its own part
/// of a batch, of as many rows as it has, and gets its part of what one rank with the whole batch
/// would have: the result, the gradients and, in place, the running statistics, but for rounding.
/// Statistics are exchanged and combined in f64 (Chan, Golub & LeVeque 1979), and are the same bits
/// on all ranks. Gradients of weight and bias are of this rank's samples alone: Ddp and Reducer add
/// them up. Without `training`, and where `group` is null or of one rank, it is batch_norm.
///
/// Operations of `group`: an all_gather in forward, then an all_reduce in backward where the
/// input's gradient is wanted. So all ranks call it as often and in the same order, with inputs of
/// as many channels that all want a gradient or none, and run the same backwards of the same
/// graphs. The group should serve nothing else (a subgroup of all ranks): the gradients' buckets
/// leave in the midst of the same backward. It must outlive the graph.
///
/// What it throws on one rank, ShapeError and DTypeError as batch_norm for instance, ends the job's
/// groups, so that the others throw as well and do not wait. Has no second derivative
/// (AutogradError).
Tensor sync_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                       OptionalTensor running_mean, OptionalTensor running_var, bool training,
                       double momentum, double eps, ProcessGroup* group);

}  // namespace lockstep::dist
