#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/restrided.h"
#include "kernels/cpu/conv/conv_loop.h"
#include "kernels/cpu/conv/onednn_conv.h"
#include "kernels/cpu/conv/winograd.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/factory/copy.h"
#include "kernels/cpu/matmul/gemm_loop.h"
#include "kernels/cpu/matmul/onednn.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;  // minimum elements per task

/// A copy of a tensor in a wider dtype C, or uninitialised memory for a result in that dtype.
template <class C>
class Widened {
 public:
  Widened(DType dtype, const void* from, int64_t count)
      : count_(count), values_(std::make_unique_for_overwrite<C[]>(static_cast<size_t>(count))) {
    if (from == nullptr) return;
    const LoadFunction load = load_function(kLane, dtype);
    const auto size = static_cast<int64_t>(size_of(dtype));
    parallel_for(0, count, kGrain, [&](int64_t first, int64_t last) {
      load(last - first, values_.get() + first, static_cast<const std::byte*>(from) + first * size,
           size);
    });
  }
  C* data() { return values_.get(); }
  void round_into(DType dtype, void* to) const {
    const StoreFunction store = store_function(dtype, kLane);
    const auto size = static_cast<int64_t>(size_of(dtype));
    parallel_for(0, count_, kGrain, [&](int64_t first, int64_t last) {
      store(last - first, static_cast<std::byte*>(to) + first * size, size, values_.get() + first);
    });
  }

 private:
  static constexpr ComputeLane kLane =
      std::is_same_v<C, double> ? ComputeLane::kF64 : ComputeLane::kF32;

  int64_t count_;
  std::unique_ptr<C[]> values_;
};

/// Adds bias[c] to channel c of every image.
template <class T>
void add_to_channels(const ConvProblem& p, T* image, const T* bias) {
  const int64_t size = p.image_size();
  parallel_for(
      0, p.batch * p.channels, std::max<int64_t>(1, kGrain / std::max<int64_t>(size, 1)),
      [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row) {
          const T added = bias[row % p.channels];
          T* to = image + row * size;
          for (int64_t i = 0; i < size; ++i) {
            to[i] = static_cast<T>(static_cast<SumType<T>>(to[i]) + static_cast<SumType<T>>(added));
          }
        }
      });
}

/// Computes `result` of f32, or of bf16 with sums in f32, by the fastest kernel there is; does
/// nothing and returns false if there is none.
bool convolve_fast(ConvResult result, const ConvProblem& p, const ConvTensors& tensors) {
  if (!winograd::fits(result, p)) return onednn::convolve(result, p, tensors);
  winograd::convolve(result, p, tensors);
  return true;
}

/// Computes `result` in the tensors' own dtype, which is not f16 or bf16; `tensors.bias` is added
/// to an image or a map.
void convolve(ConvResult result, const ConvProblem& p, ConvTensors tensors) {
  const void* onto_image = nullptr;
  if (result == ConvResult::kImage) onto_image = std::exchange(tensors.bias, nullptr);
  if (p.dtype != DType::kF32 || !convolve_fast(result, p, tensors)) {
    convolve_by_loops(result, p, tensors);
  }
  if (onto_image == nullptr) return;
  with_type(p.dtype, [&]<class T>() {
    add_to_channels(p, static_cast<T*>(tensors.image), static_cast<const T*>(onto_image));
  });
}

/// Computes `result` in C and rounds it once to the tensors' dtype.
template <class C>
void convolve_in(ConvResult result, ConvProblem p, const ConvTensors& tensors) {
  const DType dtype = std::exchange(p.dtype, dtype_of<C>);
  const auto read = [&](ConvResult which, void* from) { return which == result ? nullptr : from; };
  Widened<C> image(dtype, read(ConvResult::kImage, tensors.image), p.batch * p.image_count());
  Widened<C> weight(dtype, read(ConvResult::kWeight, tensors.weight), p.weight_count());
  Widened<C> map(dtype, read(ConvResult::kMap, tensors.map), p.batch * p.map_count());
  const int64_t biases = result == ConvResult::kMap ? p.features : p.channels;
  Widened<C> bias(dtype, tensors.bias, tensors.bias != nullptr ? biases : 0);
  convolve(
      result, p,
      {image.data(), weight.data(), map.data(), tensors.bias != nullptr ? bias.data() : nullptr});
  switch (result) {
    case ConvResult::kImage:
      return image.round_into(dtype, tensors.image);
    case ConvResult::kWeight:
      return weight.round_into(dtype, tensors.weight);
    case ConvResult::kMap:
      return map.round_into(dtype, tensors.map);
  }
}

/// Chooses the dtype to compute in.
void choose_and_convolve(ConvResult result, const ConvProblem& p, const ConvTensors& tensors) {
  // Below this many FLOP the overhead of calling oneDNN dominates, so f64 is free extra precision.
  constexpr double kSmall = 1 << 20;
  const bool small = p.flops_per_image() * static_cast<double>(p.batch) <= kSmall;
  if (!is_floating(p.dtype) || p.dtype == DType::kF64) {
    convolve(result, p, tensors);
  } else if (small) {
    convolve_in<double>(result, p, tensors);
  } else if (p.dtype == DType::kF32) {
    convolve(result, p, tensors);
  } else {
    // Adding the bias to an image already rounded to bf16 would round twice.
    const bool once = result != ConvResult::kImage || tensors.bias == nullptr;
    const bool is_fast = winograd::fits(result, p) || onednn::is_fast_in_bf16();
    const bool native = p.dtype == DType::kBF16 && once && is_fast;
    if (!native || !convolve_fast(result, p, tensors)) convolve_in<float>(result, p, tensors);
  }
}

/// Copies to row-major layout, which the loops and the oneDNN calls expect.
Restrided row_major(const char* op) { return {op, kCPU, &copy_elements, &contiguous_strides}; }

void convolution(const Out& given_out, const In& given_input, const In& given_weight,
                 const In& given_bias, IntList stride, IntList padding, IntList dilation,
                 bool transposed, IntList, int64_t groups) {
  Restrided rows = row_major("convolution");
  const Out out = rows.write(given_out);
  const In input = rows.read(given_input), weight = rows.read(given_weight),
           bias = rows.read(given_bias);
  const ConvProblem p =
      make_conv_problem(input, weight, out, stride, padding, dilation, transposed, groups);
  ConvTensors tensors;
  tensors.image = transposed ? out.address : input.address;
  tensors.weight = weight.address;
  tensors.map = transposed ? input.address : out.address;
  tensors.bias = bias.defined() ? bias.address : nullptr;
  choose_and_convolve(transposed ? ConvResult::kImage : ConvResult::kMap, p, tensors);
  rows.finish();
}

/// Sums a gradient [batch, features, places...] over batch and places: in f32 (f64 for f64) within
/// a row, in f64 over the batch, in order.
void bias_gradient(const Out& out, const In& grad) {
  const int64_t batch = grad.size(0), features = grad.size(1);
  const int64_t places = count_elements(grad.sizes().subspan(2));
  with_floating_type(grad.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    parallel_for(0, features, std::max<int64_t>(1, kGrain / std::max<int64_t>(batch * places, 1)),
                 [&](int64_t first, int64_t last) {
                   std::vector<C> buffer(std::is_same_v<T, C> ? 0 : static_cast<size_t>(places));
                   for (int64_t f = first; f < last; ++f) {
                     double total = 0;
                     for (int64_t n = 0; n < batch; ++n) {
                       const T* row = grad.data<T>() + (n * features + f) * places;
                       total += static_cast<double>(
                           join_row<SumOf<C>>(read_row(row, places, buffer.data()), places));
                     }
                     out.data<T>()[f] = convert<T>(total);
                   }
                 });
  });
}

void convolution_backward(const Out& given_dx, const Out& given_dw, const Out& given_db,
                          const In& given_grad, const In& given_input, const In& given_weight,
                          std::optional<IntList>, IntList stride, IntList padding, IntList dilation,
                          bool transposed, IntList, int64_t groups, BoolList) {
  Restrided rows = row_major("convolution_backward");
  const Out dx = rows.write(given_dx), dw = rows.write(given_dw), db = rows.write(given_db);
  const In grad_output = rows.read(given_grad), input = rows.read(given_input),
           weight = rows.read(given_weight);
  const ConvProblem p =
      make_conv_problem(input, weight, grad_output, stride, padding, dilation, transposed, groups);
  convolve_gradients(dx, dw, grad_output, input, weight, transposed,
                     [&](ConvResult result, const ConvArguments& arguments) {
                       choose_and_convolve(result, p, arguments.addresses());
                     });
  if (db.defined()) bias_gradient(db, grad_output);
  rows.finish();
}

}  // namespace

LS_KERNEL(CPU, "convolution", convolution, Strides::kAny);
LS_KERNEL(CPU, "convolution_backward", convolution_backward, Strides::kAny);

}  // namespace lockstep::cpu
