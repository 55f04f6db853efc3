#include "kernels/cuda/norm/batch_norm.h"

#include "core/dispatch/kernel.h"
#include "core/tensor/memory_format.h"
#include "kernels/common/restrided.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm/batch_norm.fatbin.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kStatistics(kImage, "batch_norm_statistics");
const Kernel kFinish(kImage, "batch_norm_finish");
const DTypeKernels kNormalise(kImage, "batch_norm_normalise");
const DTypeKernels kGradientSums(kImage, "batch_norm_gradient_sums");
const DTypeKernels kFinishGradient(kImage, "batch_norm_finish_gradient");
const DTypeKernels kGradient(kImage, "batch_norm_gradient");

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

bool is_channels_last(const In& input) {
  return suggests_channels_last(input.sizes(), input.strides());
}

/// A call over `input` that writes `result`, with the device memory passed between its kernels. The
/// layout of the images, row-major or channels-last, is that of the input.
class Call {
 public:
  BatchNorm p{};

  Call(const char* op, const In& input, const TensorArg& result, const In& grad_out, bool train,
       double eps)
      : images_(op, kernel_stream().device, &copy_elements,
                is_channels_last(input) ? &channels_last_strides : &contiguous_strides),
        vectors_(op, kernel_stream().device, &copy_elements, &contiguous_strides),
        dtype_(input.dtype),
        factors_(room(input.size(1) * BatchNorm::kFactors)),
        part_sums_(room(2 * input.size(1) * parts_of(input))) {
    Out out;
    static_cast<TensorArg&>(out) = result;
    p.channels_last = is_channels_last(input);
    const int64_t places = p.channels_last ? 1 : count_elements(input.sizes().subspan(2));
    p.input = images_.read(input).address;
    p.grad_out = images_.read(grad_out).address;
    p.result = images_.write(out).address;
    p.channels = input.size(1);
    p.per_channel = p.channels == 0 ? 0 : input.numel / p.channels;
    p.numel = input.numel;
    p.places = IndexSplitter(places, input.numel);
    p.channel_split = IndexSplitter(p.channels, input.numel);
    p.part = part_of(input);
    p.parts = parts_of(input);
    p.part_sums = part_sums_.data<double>();
    p.factors = factors_.data<double>();
    p.train = train;
    p.eps = eps;
    p.packed =
        (p.channels_last ? p.channels : places) % (16 / static_cast<int64_t>(size_of(dtype_))) ==
            0 &&
        is_aligned(p.input) && is_aligned(p.grad_out) && is_aligned(p.result);
  }

  /// Describes one of the per-channel vectors that are read.
  Numbers vector(const In& in) { return numbers_of(vectors_.read(in)); }
  /// Copies a result that was computed in another layout to its tensor.
  void finish() const { images_.finish(); }

  /// Launches a kernel over the parts of each channel.
  void run_parts(const DTypeKernels& kernels) const {
    if (p.numel == 0) return;
    constexpr int64_t kColumns = BatchNorm::kColumns;
    const int64_t across = p.channels_last ? (p.channels + kColumns - 1) / kColumns : p.channels;
    launch(kernels[dtype_],
           {.blocks = {static_cast<unsigned>(across), static_cast<unsigned>(p.parts), 1},
            .threads = 256,
            .shared_bytes = 0},
           p);
  }
  /// Launches `kernel` with one thread per channel.
  void run_channels(Kernel kernel) const {
    if (p.channels == 0) return;
    launch(kernel,
           {.blocks = {static_cast<unsigned>((p.channels + 255) / 256), 1, 1},
            .threads = 256,
            .shared_bytes = 0},
           p);
  }
  /// Launches a kernel over all elements.
  void run_elements(const DTypeKernels& kernels) const {
    if (p.numel == 0) return;
    const int64_t at_once = p.packed ? 16 / static_cast<int64_t>(size_of(dtype_)) : 1;
    launch(
        kernels[dtype_],
        {.blocks = {blocks_for(p.numel / at_once, 256), 1, 1}, .threads = 256, .shared_bytes = 0},
        p);
  }

 private:
  static size_t room(int64_t doubles) { return static_cast<size_t>(doubles) * sizeof(double); }
  static int64_t part_of(const In& input) {
    const int64_t channels = input.size(1);
    return batch_norm_part(channels, channels == 0 ? 0 : input.numel / channels,
                           is_channels_last(input));
  }
  static int64_t parts_of(const In& input) {
    if (input.numel == 0) return 0;
    const int64_t part = part_of(input);
    return (input.numel / input.size(1) + part - 1) / part;
  }

  Restrided images_;
  Restrided vectors_;
  DType dtype_;
  Workspace factors_, part_sums_;
};

void fused_batch_norm(const Out& out, const Out& save_mean, const Out& save_invstd,
                      const Out& new_mean, const Out& new_var, const In& input, const In& weight,
                      const In& bias, const In& running_mean, const In& running_var,
                      double momentum, double eps) {
  Call call("batch_norm", input, out, In(), true, eps);
  call.p.weight = call.vector(weight);
  call.p.bias = call.vector(bias);
  call.p.old_mean = call.vector(running_mean);
  call.p.old_var = call.vector(running_var);
  call.p.new_mean = numbers_of(new_mean);
  call.p.new_var = numbers_of(new_var);
  call.p.save_mean = numbers_of(save_mean);
  call.p.save_root = numbers_of(save_invstd);
  call.p.momentum = momentum;
  call.run_parts(kStatistics);
  call.run_channels(kFinish);
  call.run_elements(kNormalise);
  call.finish();
}

void batch_norm_no_training(const Out& out, const Out&, const Out&, const In& input,
                            const In& weight, const In& bias, const In& running_mean,
                            const In& running_var, double, double eps) {
  Call call("batch_norm", input, out, In(), false, eps);
  call.p.weight = call.vector(weight);
  call.p.bias = call.vector(bias);
  call.p.old_mean = call.vector(running_mean);
  call.p.old_var = call.vector(running_var);
  call.run_channels(kFinish);
  call.run_elements(kNormalise);
  call.finish();
}

void native_batch_norm_backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out,
                                const In& input, const In& weight, const In& running_mean,
                                const In& running_var, const In& save_mean, const In& save_invstd,
                                bool train, double eps, BoolList) {
  Call call("native_batch_norm_backward", input, dx, grad_out, train, eps);
  call.p.weight = call.vector(weight);
  call.p.old_mean = call.vector(running_mean);
  call.p.old_var = call.vector(running_var);
  call.p.save_mean = call.vector(save_mean);
  call.p.save_root = call.vector(save_invstd);
  call.p.grad_weight = numbers_of(dw);
  call.p.grad_bias = numbers_of(db);
  const bool sums = train || dw.defined() || db.defined();
  if (!sums) call.p.parts = 0;
  if (sums) call.run_parts(kGradientSums);
  call.run_channels(kFinishGradient[input.dtype]);
  if (dx.defined()) call.run_elements(kGradient);
  call.finish();
}

}  // namespace

LS_KERNEL(CUDA, "_fused_batch_norm", fused_batch_norm, Strides::kAny);
LS_KERNEL(CUDA, "_native_batch_norm_legit_no_training", batch_norm_no_training, Strides::kAny);
LS_KERNEL(CUDA, "native_batch_norm_backward", native_batch_norm_backward, Strides::kAny);

}  // namespace lockstep::cuda
