#include "kernels/cuda/random/random.h"

#include <atomic>
#include <tuple>

#include "core/device/active_capture.h"
#include "core/dispatch/kernel.h"
#include "core/tensor/generator.h"
#include "kernels/common/functors.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/random/random.fatbin.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;

/// f16 and bf16 numbers are generated in f32.
struct FillKernels {
  Kernel narrow, wide;
  explicit FillKernels(const std::string& stem)
      : narrow(kImage, stem + "_f32"), wide(kImage, stem + "_f64") {}
};
const FillKernels kUniform("random_uniform"), kNormal("random_normal");
const Kernel kBits(kImage, "random_bits");
const Kernel kIntegers(kImage, "random_integers");
const DTypeKernels kDropout(kImage, "random_dropout");

/// Whether a call of the default generator, made during a capture, is one that replays make anew:
/// not one that was drawn before, which is recomputed, nor one of another seed.
bool is_drawn_in(const ActiveCapture& capture, const RandomKey& key) {
  const auto place = [](const RandomKey& at) {
    return std::tuple(at.step, at.micro_batch, at.call);
  };
  return capture.position != nullptr && key.seed == capture.begun.seed &&
         place(key) >= place(capture.begun);
}

/// In a graph that is captured, replays draw numbers of the default generator anew; others are the
/// capture's.
RandomWords words_of_call(const RandomKey& key, bool is_default) {
  const ActiveCapture* const capture = active_capture();
  const bool anew = is_default && capture != nullptr && is_drawn_in(*capture, key);
  if (anew) capture->draws->store(true, std::memory_order_relaxed);
  const RandomPosition at = anew ? distance(capture->begun, key) : position_of(key);
  return {.key = {at.key[0], at.key[1]},
          .low = at.low,
          .high = at.high,
          .position = anew ? capture->position : nullptr};
}

/// Reserves a call of `generator`, or of the thread's default generator if it is null.
RandomWords next_call(Generator* generator) {
  const bool is_default = generator == nullptr || generator == &default_generator();
  return words_of_call((is_default ? default_generator() : *generator).next_call(), is_default);
}

/// `each`: number of elements that a thread generates at a time.
template <class Params>
void launch_for(Kernel kernel, const Params& params, int64_t each) {
  if (params.count == 0) return;
  launch(kernel, {.blocks = {blocks_for(params.count, kThreads * each), 1, 1}, .threads = kThreads},
         params);
}

void fill(const FillKernels& kernels, const Out& out, double scale, double offset,
          const RandomWords& words) {
  const int bits = out.dtype == DType::kBF16 ? 8 : out.dtype == DType::kF16 ? 11 : 24;
  const bool is_wide = out.dtype == DType::kF64;
  launch_for(is_wide ? kernels.wide : kernels.narrow,
             RandomFill{.words = words,
                        .out = out.address,
                        .count = out.numel,
                        .scale = scale,
                        .offset = offset,
                        .dtype = out.dtype,
                        .bits = bits},
             is_wide ? 2 : 4);
}

void uniform(const Out& out, const In&, double from, double to, Generator* generator) {
  fill(kUniform, out, to - from, from, next_call(generator));
}

void normal(const Out& out, const In&, double mean, double std, Generator* generator) {
  fill(kNormal, out, std, mean, next_call(generator));
}

void fill_bits(void* out, int64_t count, DType dtype, const RandomTruths& truths) {
  launch_for(
      kBits,
      RandomBits{
          .words = truths.words, .out = out, .count = count, .kept = truths.kept, .dtype = dtype},
      4);
}

void bernoulli(const Out& out, const In&, double p, Generator* generator) {
  fill_bits(out.address, out.numel, out.dtype, {next_call(generator), KeptWords(p)});
}

void random_from(const Out& out, const In&, int64_t from, std::optional<int64_t> to,
                 Generator* generator) {
  const uint64_t first = static_cast<uint64_t>(from);
  // Without `to`, the range goes up to and including the largest int64.
  const uint64_t range = to ? static_cast<uint64_t>(*to) - first : (uint64_t{1} << 63) - first;
  launch_for(kIntegers,
             RandomIntegers{.words = next_call(generator),
                            .out = out.address,
                            .count = out.numel,
                            .first = first,
                            .range = range,
                            .dtype = out.dtype},
             2);
}

void native_dropout(const Out& out, const Out& mask, const In& input, double p,
                    std::optional<bool> train) {
  const RandomWords words = next_call(nullptr);
  const double dropped = train.value_or(true) ? p : 0;
  launch_for(kDropout[out.dtype],
             RandomDropout{.words = words,
                           .input = input.address,
                           .out = out.address,
                           .mask = mask.data<uint8_t>(),
                           .count = out.numel,
                           .scale = dropped == 1 ? 0 : 1 / (1 - dropped),
                           .kept = KeptWords(1 - dropped)},
             4);
}

void native_dropout_backward(const Out& out, const In& grad, const In& mask, double scale) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, uint8_t>(out, functors::MaskedScale<T>{static_cast<T>(scale)}, grad, mask);
  });
}

}  // namespace

RandomWords random_words(const RandomKey& key) { return words_of_call(key, /*is_default=*/true); }

void draw_truths(void* out, int64_t count, const RandomTruths& truths) {
  fill_bits(out, count, DType::kBool, truths);
}

LS_KERNEL(CUDA, "uniform", uniform, Strides::kContiguous);
LS_KERNEL(CUDA, "normal", normal, Strides::kContiguous);
LS_KERNEL(CUDA, "bernoulli.p", bernoulli, Strides::kContiguous);
LS_KERNEL(CUDA, "random.from", random_from, Strides::kContiguous);
LS_KERNEL(CUDA, "native_dropout", native_dropout, Strides::kContiguous);
LS_KERNEL(CUDA, "native_dropout_backward", native_dropout_backward, Strides::kAny);

}  // namespace lockstep::cuda
