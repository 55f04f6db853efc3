#include "kernels/cuda/loss/loss.h"

#include <optional>

#include "core/dispatch/kernel.h"
#include "core/ops/loss/loss.h"
#include "kernels/cuda/index/grouping.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/loss/cross_entropy.h"
#include "kernels/cuda/loss/loss.fatbin.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kNll(kImage, "loss_nll");
const DTypeKernels kNllBackward(kImage, "loss_nll_backward");
const DTypeKernels kRows(kImage, "loss_cross_entropy_rows");
const DTypeKernels kTotal(kImage, "loss_cross_entropy_total");
const DTypeKernels kBackward(kImage, "loss_cross_entropy_backward");
const Kernel kUsedTargets(kImage, "loss_used_targets");
constexpr const char* kOutOfRange = "target out of range";
const FaultKind kOfNllLoss("nll_loss", kOutOfRange);
const FaultKind kOfNllLossBackward("nll_loss_backward", kOutOfRange);
const FaultKind kOfCrossEntropy("cross_entropy_loss", kOutOfRange);

bool is_none(int64_t reduction) { return reduction == static_cast<int64_t>(Reduction::kNone); }
bool is_mean(int64_t reduction) { return reduction == static_cast<int64_t>(Reduction::kMean); }

/// Number of blocks that each process a row at a time; at least 1, as a grid must not be empty.
unsigned row_blocks(int64_t rows) { return blocks_for(rows, 1, 132 * 64); }

template <class Params>
void launch_for(Kernel kernel, unsigned blocks, unsigned threads, const Params& params) {
  launch(kernel, {.blocks = {blocks, 1, 1}, .threads = threads}, params);
}

}  // namespace

IndexList class_list(const FaultKind& fault, const In& target, int64_t classes,
                     int64_t ignore_index) {
  IndexList list = index_list(fault, target, classes);
  list.skipped = ignore_index;
  if (target.dtype == DType::kU8) list.kind = IndexList::Kind::kU8;
  return list;
}

void queue_rows(DType dtype, const CrossEntropyRows& params) {
  if (params.rows != 0) launch_for(kRows[dtype], row_blocks(params.rows), kRowThreads, params);
}
void queue_total(DType dtype, const CrossEntropyTotal& params) {
  launch_for(kTotal[dtype], 1, kTotalThreads, params);
}
void queue_backward(DType dtype, const CrossEntropyBackward& params) {
  if (params.rows != 0) launch_for(kBackward[dtype], row_blocks(params.rows), kRowThreads, params);
}

namespace {

void nll_loss_forward(const Out& out, const Out& total_weight, const In& self, const In& target,
                      const In& weight, int64_t reduction, int64_t ignore_index) {
  const int64_t classes = self.size(-1);
  launch_for(kNll[self.dtype], 1, kTotalThreads,
             NllLoss{.targets = class_list(kOfNllLoss, target, classes, ignore_index),
                     .x = self.address,
                     .weight = weight.defined() ? weight.address : nullptr,
                     .out = out.address,
                     .total_weight = total_weight.address,
                     .rows = target.numel,
                     .classes = classes,
                     .is_each = is_none(reduction),
                     .is_mean = is_mean(reduction),
                     .clears_total = is_none(reduction) && self.rank == 2});
}

void nll_loss_backward(const Out& out, const In& grad_output, const In& self, const In& target,
                       const In& weight, int64_t reduction, int64_t ignore_index,
                       const In& total_weight) {
  if (out.numel == 0) return;
  const int64_t classes = self.size(-1);
  launch_for(
      kNllBackward[self.dtype], blocks_for(out.numel, 256 * 4), 256,
      NllLossBackward{.targets = class_list(kOfNllLossBackward, target, classes, ignore_index),
                      .weight = weight.defined() ? weight.address : nullptr,
                      .grads = grad_output.address,
                      .total_weight = is_mean(reduction) ? total_weight.address : nullptr,
                      .out = out.address,
                      .rows = target.numel,
                      .classes = classes,
                      .grad_of_each = is_none(reduction)});
}

void fused_cross_entropy(const Out& out, const Out& logsumexp, const In& self, const In& target,
                         int64_t reduction, int64_t ignore_index) {
  const int64_t rows = self.size(0), classes = self.size(1);
  const IndexList targets = class_list(kOfCrossEntropy, target, classes, ignore_index);
  std::optional<Workspace> losses;
  if (!is_none(reduction)) {
    losses.emplace(static_cast<size_t>(rows) * size_of(logsumexp.dtype));
  }
  queue_rows(self.dtype, {.targets = targets,
                          .x = self.address,
                          .logsumexp = logsumexp.address,
                          .losses = losses ? losses->data() : nullptr,
                          .each = losses ? nullptr : out.address,
                          .rows = rows,
                          .classes = classes});
  if (is_none(reduction)) return;
  queue_total(self.dtype, {.targets = targets,
                           .losses = losses->data(),
                           .out = out.address,
                           .rows = rows,
                           .is_mean = is_mean(reduction)});
}

void fused_cross_entropy_backward(const Out& out, const In& self, const In& grad_output,
                                  const In& target, const In& logsumexp, int64_t reduction,
                                  int64_t ignore_index) {
  const int64_t rows = self.size(0), classes = self.size(1);
  if (out.numel == 0) return;
  const IndexList targets = class_list(kOfCrossEntropy, target, classes, ignore_index);
  const Workspace used(sizeof(int64_t));
  if (is_mean(reduction)) {
    launch(kUsedTargets, {.blocks = {1, 1, 1}, .threads = kTotalThreads},
           UsedTargets{targets, used.data<int64_t>()});
  }
  queue_backward(self.dtype, {.targets = targets,
                              .x = self.address,
                              .logsumexp = logsumexp.address,
                              .grads = grad_output.address,
                              .used = is_mean(reduction) ? used.data<const int64_t>() : nullptr,
                              .out = out.address,
                              .rows = rows,
                              .classes = classes,
                              .grad_of_each = is_none(reduction)});
}

}  // namespace

LS_KERNEL(CUDA, "nll_loss_forward", nll_loss_forward, Strides::kContiguous);
LS_KERNEL(CUDA, "nll_loss_backward", nll_loss_backward, Strides::kContiguous);
LS_KERNEL(CUDA, "_fused_cross_entropy", fused_cross_entropy, Strides::kContiguous);
LS_KERNEL(CUDA, "_fused_cross_entropy_backward", fused_cross_entropy_backward,
          Strides::kContiguous);

}  // namespace lockstep::cuda
