#include "kernels/cuda/norm/group_norm.h"

#include "core/dispatch/kernel.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm/group_norm.fatbin.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;

const DTypeKernels kForward(kImage, "group_norm_forward");
const DTypeKernels kSums(kImage, "group_norm_sums");
const DTypeKernels kGradient(kImage, "group_norm_gradient");
const Kernel kParameters(kImage, "group_norm_parameters");

GroupNorm params_of(const In& input, const In& weight, int64_t n, int64_t channels,
                    int64_t positions, int64_t groups) {
  GroupNorm p{};
  p.input = input.address;
  p.samples = n;
  p.channels = channels;
  p.positions = positions;
  p.groups = groups;
  p.width = channels / groups;
  p.place = IndexSplitter(positions, p.width * positions);
  p.weight = numbers_of(weight);
  return p;
}

/// Launches `kernel` with one block per `per_block` pieces.
void run(Kernel kernel, int64_t pieces, int64_t per_block, const GroupNorm& p) {
  if (pieces == 0) return;
  launch(kernel,
         {.blocks = {static_cast<unsigned>((pieces + per_block - 1) / per_block), 1, 1},
          .threads = kThreads,
          .shared_bytes = 0},
         p);
}

void fused_group_norm(const Out& out, const Out& mean, const Out& rstd, const In& input,
                      const In& weight, const In& bias, int64_t n, int64_t channels,
                      int64_t positions, int64_t groups, double eps) {
  GroupNorm p = params_of(input, weight, n, channels, positions, groups);
  p.result = out.address;
  p.mean = numbers_of(mean);
  p.root = numbers_of(rstd);
  p.bias = numbers_of(bias);
  p.eps = eps;
  run(kForward[input.dtype], n * groups, 1, p);
}

void native_group_norm_backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out,
                                const In& input, const In& mean, const In& rstd, const In& weight,
                                int64_t n, int64_t channels, int64_t positions, int64_t groups,
                                BoolList) {
  GroupNorm p = params_of(input, weight, n, channels, positions, groups);
  p.grad_out = grad_out.address;
  p.result = dx.address;
  p.mean = numbers_of(mean);
  p.root = numbers_of(rstd);
  p.grad_weight = numbers_of(dw);
  p.grad_bias = numbers_of(db);
  const Workspace sums(static_cast<size_t>(2 * n * channels) * sizeof(double));
  p.sums = sums.data<double>();
  run(kSums[input.dtype], n * channels, kThreads / 32, p);
  if (dx.defined()) run(kGradient[input.dtype], n * groups, 1, p);
  if (dw.defined() || db.defined()) run(kParameters, channels, kThreads, p);
}

}  // namespace

LS_KERNEL(CUDA, "_fused_group_norm", fused_group_norm, Strides::kContiguous);
LS_KERNEL(CUDA, "native_group_norm_backward", native_group_norm_backward, Strides::kContiguous);

}  // namespace lockstep::cuda
