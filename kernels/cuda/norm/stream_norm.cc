#include "kernels/cuda/norm/stream_norm.h"

#include <array>
#include <optional>
#include <string>

#include "core/dispatch/kernel.h"
#include "kernels/common/norm_rows.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm/norm_join.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/workspace.h"

// Each header defines a kImage, so each is included in a namespace of its own.
namespace lockstep::cuda::stream_forward {
#include "kernels/cuda/norm/stream_norm.fatbin.h"
}
namespace lockstep::cuda::stream_backward {
#include "kernels/cuda/norm/stream_norm_backward.fatbin.h"
}

namespace lockstep::cuda {

namespace {

/// The forward kernels, for streams in f32, and without packs in f64.
class ForwardKernels {
 public:
  ForwardKernels() {
    for (int i = 0; i < kRowStrategies; ++i) {
      const auto strategy = static_cast<RowStrategy>(i);
      const bool scalar = strategy == RowStrategy::kWarpScalar ||
                          strategy == RowStrategy::kBlockScalar || strategy == RowStrategy::kStream;
      const std::string end = std::string("_") + name(strategy);
      const auto* const image = stream_forward::kImage;
      kernels_[static_cast<size_t>(i)] =
          scalar ? DTypeKernels(image, "stream_norm", {DType::kF32, DType::kF64}, end)
                 : DTypeKernels(image, "stream_norm", {DType::kF32}, end);
    }
  }
  Kernel operator()(DType dtype, RowStrategy strategy) const {
    return kernels_[static_cast<size_t>(strategy)][dtype];
  }

 private:
  std::array<DTypeKernels, kRowStrategies> kernels_;
};
const ForwardKernels kForward;

/// The backward kernels of one way to share a row.
DTypeKernels backward_kernels(const char* end, bool packs = false) {
  const auto* const image = stream_backward::kImage;
  return packs ? DTypeKernels(image, "stream_norm_backward", {DType::kF32}, end)
               : DTypeKernels(image, "stream_norm_backward", {DType::kF32, DType::kF64}, end);
}
const DTypeKernels kPacks1 = backward_kernels("_packs1", true);
const DTypeKernels kPacks2 = backward_kernels("_packs2", true);
const DTypeKernels kPacks4 = backward_kernels("_packs4", true);
const DTypeKernels kColumns1 = backward_kernels("_columns1");
const DTypeKernels kColumns4 = backward_kernels("_columns4");
const DTypeKernels kStream = backward_kernels("_stream");

const DTypeKernels& backward_kernels(const StreamNormColumns& columns) {
  switch (columns.kind) {
    case StreamNormColumns::Kind::kPacks:
      return columns.each == 1 ? kPacks1 : columns.each == 2 ? kPacks2 : kPacks4;
    case StreamNormColumns::Kind::kColumns:
      return columns.each == 1 ? kColumns1 : kColumns4;
    default:
      return kStream;
  }
}

void* address_of(const TensorArg& tensor) { return tensor.defined() ? tensor.address : nullptr; }

/// Whether all rows of every tensor start at packs of 4 elements, which are loaded at once.
template <class... Tensors>
bool in_packs(int64_t n, const Tensors&... tensors) {
  const auto aligned = [&](const TensorArg& tensor) {
    const auto bytes = 4 * size_of(tensor.dtype);
    return !tensor.defined() || reinterpret_cast<uintptr_t>(tensor.address) % bytes == 0;
  };
  return n % 4 == 0 && (aligned(tensors) && ...);
}

/// `branch` and `sum` may be undefined, and `mean` is for RMS norm.
void forward(const Out& out, const Out& sum, const Out& mean, const Out& rstd, const In& stream,
             const In& branch, IntList normalized_shape, const In& weight, const In& bias,
             double eps) {
  if (rstd.numel == 0) return;
  const int64_t n = norm_row_length(stream, normalized_shape);
  const StreamNormRows rows{.x = stream.address,
                            .branch = address_of(branch),
                            .sum = address_of(sum),
                            .y = out.address,
                            .weight = address_of(weight),
                            .bias = address_of(bias),
                            .mean = vector_of(mean),
                            .rstd = vector_of(rstd),
                            .branch_dtype = branch.dtype,
                            .y_dtype = out.dtype,
                            .rows = rstd.numel,
                            .n = n,
                            .eps = eps,
                            .centre = mean.defined()};
  const RowStrategy strategy =
      row_strategy(stream.dtype, n, in_packs(n, stream, branch, sum, out, weight, bias));
  launch(kForward(stream.dtype, strategy),
         {.blocks = {blocks_for(rows.rows, rows_of_block(strategy)), 1, 1}, .threads = kRowThreads},
         rows);
}

void stream_norm_backward(const Out& dx, const Out& narrow, const Out& dw, const Out& db,
                          const In& grad_out, const In& carried, const In& input,
                          IntList normalized_shape, const In& mean, const In& rstd,
                          const In& weight, std::optional<DType>, BoolList) {
  const int64_t n = norm_row_length(input, normalized_shape);
  if (n == 0) return;
  const bool wide = input.dtype == DType::kF64;
  const StreamNormColumns columns = stream_norm_columns(
      input.dtype, n, in_packs(n, grad_out, carried, input, weight, dx, narrow));
  StreamNormBackward rows{.grad = grad_out.address,
                          .carried = address_of(carried),
                          .x = input.address,
                          .weight = address_of(weight),
                          .mean = vector_of(mean),
                          .rstd = vector_of(rstd),
                          .dx = address_of(dx),
                          .narrow = address_of(narrow),
                          .partial_weight = nullptr,
                          .partial_bias = nullptr,
                          .grad_dtype = grad_out.dtype,
                          .narrow_dtype = narrow.dtype,
                          .rows = rstd.numel,
                          .n = n,
                          .group = stream_norm_group(rstd.numel, columns.threads),
                          .centre = mean.defined()};
  const int64_t groups = (rows.rows + rows.group - 1) / rows.group;
  const size_t bytes = static_cast<size_t>(groups * n) * size_of(input.dtype);
  const Workspace weight_sums(dw.defined() ? bytes : 0), bias_sums(db.defined() ? bytes : 0);
  if (dw.defined()) rows.partial_weight = weight_sums.data();
  if (db.defined()) rows.partial_bias = bias_sums.data();
  if (groups > 0) {
    launch(backward_kernels(columns)[input.dtype],
           {.blocks = {static_cast<unsigned>(groups), 1, 1}, .threads = columns.threads}, rows);
  }
  if (!dw.defined() && !db.defined()) return;
  join_norm_groups(dw, rows.partial_weight, db, rows.partial_bias, groups, n, wide);
}

void stream_norm(const Out& out, const Out& mean, const Out& rstd, const In& stream,
                 IntList normalized_shape, const In& weight, const In& bias, double eps, bool,
                 std::optional<DType>) {
  forward(out, Out(), mean, rstd, stream, In(), normalized_shape, weight, bias, eps);
}

void stream_sum_norm(const Out& out, const Out& sum, const Out& mean, const Out& rstd,
                     const In& stream, const In& branch, IntList normalized_shape, const In& weight,
                     const In& bias, double eps, bool, std::optional<DType>) {
  forward(out, sum, mean, rstd, stream, branch, normalized_shape, weight, bias, eps);
}

}  // namespace

LS_KERNEL(CUDA, "stream_norm", stream_norm, Strides::kContiguous);
LS_KERNEL(CUDA, "stream_sum_norm", stream_sum_norm, Strides::kContiguous);
LS_KERNEL(CUDA, "stream_norm_backward", stream_norm_backward, Strides::kContiguous);

}  // namespace lockstep::cuda
