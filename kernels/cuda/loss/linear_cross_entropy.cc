#include <algorithm>

#include "core/cuda/runtime.h"
#include "core/device/device_runtime.h"
#include "core/dispatch/kernel.h"
#include "core/ops/loss/loss.h"
#include "kernels/common/classifier_products.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/loss/cross_entropy.h"
#include "kernels/cuda/loss/linear_cross_entropy.fatbin.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

const FaultKind kOfLinearCrossEntropy("linear_cross_entropy", "target out of range");
const DTypeKernels kHeld(kImage, "linear_cross_entropy_held",
                         {DType::kF32, DType::kBF16, DType::kF16});

int64_t bytes_of(DType dtype, int64_t elements) {
  return elements * static_cast<int64_t>(size_of(dtype));
}

/// `classes` rounded up to a multiple of 16 bytes. With another number cuBLASLt's products take two
/// to eight times as long (on an H200, 50,257 classes against 50,264).
int64_t padded_classes(DType dtype, int64_t classes) {
  const int64_t unit = 16 / bytes_of(dtype, 1);
  return (classes + unit - 1) / unit * unit;
}

/// Whether blocks hold whole rows in shared memory, with room for two blocks on a processor: one
/// reads while the other writes.
bool holds_rows(DType dtype, int64_t classes) {
  if (dtype == DType::kF64) return false;
  const Stream stream = kernel_stream();
  Context& context = runtime_of(stream.device).context(stream.device.index);
  constexpr int64_t kOwn = 2304;  // 1,024 bytes of each block are the driver's, 1,280 its sums'
  const int64_t room =
      context.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / 2 - kOwn;
  return bytes_of(dtype, classes) <= room;
}

/// Replaces the logits of `chunk`, of which the first `classes` in each row are of classes, by
/// their gradient, and those behind by 0.
void queue_held(const ClassifierChunk& chunk, int64_t classes, const IndexList& targets,
                void* losses) {
  launch(kHeld[chunk.dtype],
         {.blocks = {blocks_for(chunk.rows, 1), 1, 1},
          .threads = kHeldThreads,
          .shared_bytes = static_cast<unsigned>(bytes_of(chunk.dtype, chunk.classes))},
         HeldCrossEntropy{.targets = targets,
                          .x = chunk.logits,
                          .losses = static_cast<float*>(losses),
                          .rows = chunk.rows,
                          .classes = classes,
                          .stride = chunk.classes,
                          .scale = chunk.scale});
}

/// The classifier's weight and its gradient with `rows` rows, of which those behind the tensors'
/// own are zero; the tensors themselves if they have as many.
class PaddedWeight {
 public:
  PaddedWeight(const In& weight, const Out& gradient, int64_t rows)
      : gradient_(gradient),
        is_padded_(rows != weight.size(0)),
        rows_(bytes_of_rows(weight, is_padded_ ? rows : 0)),
        gradients_(bytes_of_rows(gradient, is_padded_ && gradient.defined() ? rows : 0)),
        address_(is_padded_ ? rows_.data() : weight.address),
        gradient_address_(is_padded_ ? gradients_.data() : gradient.address) {
    if (!is_padded_) return;
    const int64_t own = bytes_of(weight.dtype, weight.numel);
    const int64_t sizes[] = {(rows - weight.size(0)) * weight.size(1)}, strides[] = {1};
    Out behind;
    behind.address = rows_.data<char>() + own;
    behind.size_data = sizes;
    behind.stride_data = strides;
    behind.numel = sizes[0];
    behind.rank = 1;
    behind.dtype = weight.dtype;
    behind.contiguous = true;
    fill_elements(behind, 0);
    copy_async(kernel_stream(), rows_.data(), weight.address, static_cast<size_t>(own),
               Transfer::kWithin);
  }

  const void* address() const { return address_; }
  void* gradient() const { return gradient_address_; }
  /// Writes the tensor of the gradient, where that has fewer rows.
  void write_gradient() const {
    if (!is_padded_ || !gradient_.defined()) return;
    copy_async(kernel_stream(), gradient_.address, gradient_address_,
               static_cast<size_t>(bytes_of(gradient_.dtype, gradient_.numel)), Transfer::kWithin);
  }

 private:
  static size_t bytes_of_rows(const TensorArg& matrix, int64_t rows) {
    return rows == 0 ? 0 : static_cast<size_t>(bytes_of(matrix.dtype, rows * matrix.size(1)));
  }

  const Out& gradient_;
  bool is_padded_;
  Workspace rows_;
  Workspace gradients_;
  const void* address_;
  void* gradient_address_;
};

/// Address of element `i` of a contiguous tensor.
char* element(const TensorArg& tensor, int64_t i) {
  return static_cast<char*>(tensor.address) + i * static_cast<int64_t>(size_of(tensor.dtype));
}

/// The targets of `count` rows from `first` on.
IndexList targets_of(IndexList all, const In& target, int64_t first, int64_t count) {
  all.data = element(target, first);
  all.count = count;
  return all;
}

void linear_cross_entropy(const Out& loss, const Out& grad_input, const Out& grad_weight,
                          const In& input, const In& weight, const In& target, int64_t reduction,
                          int64_t ignore_index, int64_t chunk_rows, BoolList) {
  const int64_t rows = input.size(0), width = input.size(1), classes = weight.size(0);
  const int64_t most = std::min(chunk_rows, rows);
  const bool is_each = reduction == static_cast<int64_t>(Reduction::kNone);
  const IndexList all = class_list(kOfLinearCrossEntropy, target, classes, ignore_index);
  const size_t statistic = size_of(loss.dtype);
  const bool has_gradient = grad_input.defined() || grad_weight.defined();
  const int64_t padded = padded_classes(input.dtype, classes);
  const bool held = has_gradient && holds_rows(input.dtype, padded);
  const int64_t columns = held ? padded : classes;
  const PaddedWeight matrix(weight, grad_weight, columns);
  const Workspace logits(static_cast<size_t>(bytes_of(input.dtype, most * columns)));
  const Workspace logsumexp(static_cast<size_t>(most) * statistic);
  const Workspace losses(static_cast<size_t>(rows) * statistic);
  const auto chunk_at = [&](int64_t first) {
    return ClassifierChunk{.dtype = input.dtype,
                           .rows = std::min(most, rows - first),
                           .width = width,
                           .classes = columns,
                           .input = element(input, first * width),
                           .weight = matrix.address(),
                           .logits = logits.data(),
                           .scale = classifier_scale(input.dtype)};
  };
  for (int64_t first = 0; first < rows; first += most) {
    const ClassifierChunk chunk = chunk_at(first);
    const IndexList targets = targets_of(all, target, first, chunk.rows);
    char* const chunk_losses = losses.data<char>() + static_cast<size_t>(first) * statistic;
    gemm(chunk.product());
    if (held) {
      queue_held(chunk, classes, targets, chunk_losses);
    } else {
      queue_rows(input.dtype, {.targets = targets,
                               .x = chunk.logits,
                               .logsumexp = logsumexp.data(),
                               .losses = chunk_losses,
                               .each = is_each ? element(loss, first) : nullptr,
                               .rows = chunk.rows,
                               .classes = classes});
      if (!has_gradient) continue;
      queue_backward(input.dtype, {.targets = targets,
                                   .x = chunk.logits,
                                   .logsumexp = logsumexp.data(),
                                   .grads = nullptr,
                                   .used = nullptr,
                                   .out = chunk.logits,
                                   .rows = chunk.rows,
                                   .classes = classes,
                                   .grad_of_each = false,
                                   .scale = chunk.scale});
    }
    if (grad_input.defined()) gemm(chunk.input_gradient(element(grad_input, first * width)));
    if (grad_weight.defined()) gemm(chunk.weight_gradient(matrix.gradient(), first != 0));
  }
  if (rows == 0 && grad_weight.defined()) {
    gemm(chunk_at(0).weight_gradient(matrix.gradient(), false));
  }
  matrix.write_gradient();
  if (is_each) return;
  queue_total(input.dtype, {.targets = all,
                            .losses = losses.data(),
                            .out = loss.address,
                            .rows = rows,
                            .is_mean = reduction == static_cast<int64_t>(Reduction::kMean)});
}

}  // namespace

LS_KERNEL(CUDA, "_linear_cross_entropy", linear_cross_entropy, Strides::kContiguous);

}  // namespace lockstep::cuda
