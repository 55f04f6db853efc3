#include "kernels/cuda/norm/norm.h"

#include "core/dispatch/kernel.h"
#include "core/tensor/number_range.h"
#include "kernels/common/norm_rows.h"
#include "kernels/cuda/kept_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm/norm_join.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda/row_steps.h"
#include "kernels/cuda/workspace.h"

// Each header defines a kImage, so each is included in a namespace of its own.
namespace lockstep::cuda::norm_forward {
#include "kernels/cuda/norm/norm.fatbin.h"
}
namespace lockstep::cuda::norm_backward {
#include "kernels/cuda/norm/norm_backward.fatbin.h"
}
namespace lockstep::cuda::norm_parameters {
#include "kernels/cuda/norm/norm_parameters.fatbin.h"
}

namespace lockstep::cuda {

namespace {

const RowKernels kForward(norm_forward::kImage, "norm");
const RowKernels kBackward(norm_backward::kImage, "norm_backward");
const DTypeKernels kPacked(norm_parameters::kImage, "norm_parameters", kFloatingDTypes, "_packed");
const DTypeKernels kScalar(norm_parameters::kImage, "norm_parameters", kFloatingDTypes, "_scalar");
const Kernel kJoinF32(norm_parameters::kImage, "norm_join_f32");
const Kernel kJoinF64(norm_parameters::kImage, "norm_join_f64");

const void* address_of(const In& parameter) {
  return parameter.defined() ? parameter.address : nullptr;
}

/// `y` is the tensor that the kernel writes.
RowStrategy strategy_for(DType dtype, const void* y, const NormRows& rows) {
  const auto aligned = [&](const void* at) { return rows_aligned(at, dtype, rows.n); };
  return row_strategy(dtype, rows.n,
                      aligned(rows.x) && aligned(rows.grad) && aligned(rows.weight) &&
                          aligned(rows.bias) && aligned(y));
}

void launch_rows(const RowKernels& kernels, DType dtype, const void* y, const NormRows& rows) {
  if (rows.rows == 0) return;
  const RowStrategy strategy = strategy_for(dtype, y, rows);
  launch(kernels(dtype, strategy),
         {.blocks = {blocks_for(rows.rows, rows_of_block(strategy)), 1, 1}, .threads = kRowThreads},
         rows);
}

void capture_norm(RowCapture& capture, DType dtype, RowStrategy strategy, const NormRows& rows) {
  const NormStep step{rows.eps, rows.mean.dtype, rows.rstd.dtype, rows.centre};
  capture_rows(capture, held_function("norm_step", dtype, strategy), is_of_blocks(strategy),
               "NormStep", step, {rows.y, rows.mean.data, rows.rstd.data},
               {rows.x, rows.weight, rows.bias});
}

/// `mean` is null for RMS norm.
void forward(const Out& out, const Out* mean, const Out& rstd, const In& input,
             IntList normalized_shape, const In& weight, const In& bias, double eps) {
  NormRows rows{};
  rows.x = input.address;
  rows.y = out.address;
  rows.weight = address_of(weight);
  rows.bias = address_of(bias);
  if (mean != nullptr) rows.mean = vector_of(*mean);
  rows.rstd = vector_of(rstd);
  rows.rows = rstd.numel;
  rows.n = norm_row_length(input, normalized_shape);
  rows.eps = eps;
  rows.centre = mean != nullptr;
  if (RowCapture* const capture = RowCapture::active(); capture != nullptr) [[unlikely]] {
    const RowStrategy strategy = strategy_for(input.dtype, rows.y, rows);
    if (strategy != RowStrategy::kStream)
      return capture_norm(*capture, input.dtype, strategy, rows);
  }
  launch_rows(kForward, input.dtype, rows.y, rows);
}

/// `dw` and `db` may be undefined.
void parameter_gradients(const Out& dw, const Out& db, const NormRows& rows, DType dtype) {
  if ((!dw.defined() && !db.defined()) || rows.n == 0) return;
  const bool wide = dtype == DType::kF64;
  const bool aligned =
      rows_aligned(rows.x, dtype, rows.n) && rows_aligned(rows.grad, dtype, rows.n);
  const int64_t pack = aligned ? 16 / static_cast<int64_t>(size_of(dtype)) : 1;
  NormParameters parameters{};
  parameters.x = rows.x;
  parameters.grad = rows.grad;
  parameters.mean = rows.mean;
  parameters.rstd = rows.rstd;
  parameters.rows = rows.rows;
  parameters.n = rows.n;
  parameters.group = norm_group(rows.rows, rows.n, pack);
  const int64_t groups = (rows.rows + parameters.group - 1) / parameters.group;
  const size_t bytes = static_cast<size_t>(groups * rows.n) * (wide ? 8 : 4);
  const Workspace weight(dw.defined() ? bytes : 0), bias(db.defined() ? bytes : 0);
  if (dw.defined()) parameters.partial_weight = weight.data();
  if (db.defined()) parameters.partial_bias = bias.data();
  if (groups > 0) {
    const auto tiles = static_cast<unsigned>((rows.n + 32 * pack - 1) / (32 * pack));
    launch((aligned ? kPacked : kScalar)[dtype],
           {.blocks = {tiles, static_cast<unsigned>(groups), 1}, .threads = 32 * kNormRowThreads},
           parameters);
  }
  join_norm_groups(dw, parameters.partial_weight, db, parameters.partial_bias, groups, rows.n,
                   wide);
}

/// `dx`, `dw` and `db` may be undefined; `mean` is undefined for RMS norm.
void backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out, const In& input,
              IntList normalized_shape, const In& mean, const In& rstd, const In& weight) {
  NormRows rows{};
  rows.x = input.address;
  rows.grad = grad_out.address;
  rows.weight = address_of(weight);
  rows.mean = vector_of(mean);
  rows.rstd = vector_of(rstd);
  rows.rows = rstd.numel;
  rows.n = norm_row_length(input, normalized_shape);
  rows.centre = mean.defined();
  if (dx.defined() && dx.numel > 0) {
    rows.dx = dx.address;
    launch_rows(kBackward, input.dtype, rows.dx, rows);
  }
  parameter_gradients(dw, db, rows, input.dtype);
}

void native_layer_norm(const Out& out, const Out& mean, const Out& rstd, const In& input,
                       IntList normalized_shape, const In& weight, const In& bias, double eps) {
  forward(out, &mean, rstd, input, normalized_shape, weight, bias, eps);
}

void native_layer_norm_backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out,
                                const In& input, IntList normalized_shape, const In& mean,
                                const In& rstd, const In& weight, const In&, BoolList) {
  backward(dx, dw, db, grad_out, input, normalized_shape, mean, rstd, weight);
}

void fused_rms_norm(const Out& out, const Out& rstd, const In& input, IntList normalized_shape,
                    const In& weight, std::optional<double> eps) {
  forward(out, nullptr, rstd, input, normalized_shape, weight, In(),
          eps.value_or(machine_epsilon(input.dtype)));
}

void fused_rms_norm_backward(const Out& dx, const Out& dw, const In& grad_out, const In& input,
                             IntList normalized_shape, const In& rstd, const In& weight, BoolList) {
  backward(dx, dw, Out(), grad_out, input, normalized_shape, In(), rstd, weight);
}

}  // namespace

void join_norm_groups(const Out& dw, const void* partial_weight, const Out& db,
                      const void* partial_bias, int64_t groups, int64_t n, bool wide) {
  NormParametersJoin join{};
  join.groups = groups;
  join.n = n;
  unsigned count = 0;
  const auto add = [&](const Out& result, const void* partial) {
    if (!result.defined()) return;
    join.partial[count] = partial;
    join.result[count++] = vector_of(result);
  };
  add(dw, partial_weight);
  add(db, partial_bias);
  launch(
      wide ? kJoinF64 : kJoinF32,
      {.blocks = {static_cast<unsigned>((n + 31) / 32), count, 1}, .threads = 32 * kNormRowThreads},
      join);
}

LS_KERNEL(CUDA, "native_layer_norm", native_layer_norm, Strides::kContiguous);
LS_KERNEL(CUDA, "native_layer_norm_backward", native_layer_norm_backward, Strides::kContiguous);
LS_KERNEL(CUDA, "_fused_rms_norm", fused_rms_norm, Strides::kContiguous);
LS_KERNEL(CUDA, "_fused_rms_norm_backward", fused_rms_norm_backward, Strides::kContiguous);

}  // namespace lockstep::cuda
