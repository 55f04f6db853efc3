#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/random/random.h"
#include "kernels/cuda/random/random_words.cuh"

namespace lockstep::cuda {

namespace {

/// One thread per group writes the group's `kEach` elements.
template <int kEach, class T, class Params, class Make>
__device__ void fill_groups(const Params& p, const Make& make) {
  const int64_t element = element_size(p.dtype);
  const RandomWords words = words_of(p.words);
  for (int64_t g = grid_thread(); g * kEach < p.count; g += grid_threads()) {
    T values[kEach];
    make(RandomGroup(words, g), values);
    for (int k = 0; k < kEach && g * kEach + k < p.count; ++k) {
      store_as(p.dtype, static_cast<char*>(p.out) + (g * kEach + k) * element, values[k]);
    }
  }
}

template <class T, int kEach>
__device__ void scale_and_shift(const RandomFill& p, T (&values)[kEach]) {
  for (T& value : values) {
    value = std::fma(value, static_cast<T>(p.scale), static_cast<T>(p.offset));
  }
}

template <class T>
__device__ void dropout(const RandomDropout& p) {
  using C = ComputeType<T>;
  using Elements = Pack<T, 4>;
  using Mask = Pack<uint8_t, 4>;
  const auto is_aligned = [](const void* address, size_t bytes) {
    return reinterpret_cast<uintptr_t>(address) % bytes == 0;
  };
  const bool aligned = is_aligned(p.input, sizeof(Elements)) &&
                       is_aligned(p.out, sizeof(Elements)) && is_aligned(p.mask, sizeof(Mask));
  const auto* const input = static_cast<const T*>(p.input);
  auto* const out = static_cast<T*>(p.out);
  const auto scale = static_cast<C>(p.scale);
  const RandomWords words = words_of(p.words);
  for (int64_t first = grid_thread() * 4; first < p.count; first += grid_threads() * 4) {
    const RandomGroup group(words, first / 4);
    const bool whole = aligned && first + 4 <= p.count;
    Elements values{};
    Mask mask;
    if (whole) {
      values = *reinterpret_cast<const Elements*>(input + first);
    } else {
      for (int k = 0; k < 4 && first + k < p.count; ++k) values.at[k] = input[first + k];
    }
    for (int k = 0; k < 4; ++k) {
      mask.at[k] = p.kept(group.word[k]);
      const C value = convert<C>(values.at[k]) * scale;
      values.at[k] = convert<T>(mask.at[k] != 0 ? value : C(0));
    }
    if (whole) {
      *reinterpret_cast<Elements*>(out + first) = values;
      *reinterpret_cast<Mask*>(p.mask + first) = mask;
    } else {
      for (int k = 0; k < 4 && first + k < p.count; ++k) {
        out[first + k] = values.at[k];
        p.mask[first + k] = mask.at[k];
      }
    }
  }
}

}  // namespace

LS_CUDA_KERNEL(random_uniform_f32, RandomFill, 256) {
  fill_groups<4, float>(p, [&](const RandomGroup& group, float(&values)[4]) {
    for (int k = 0; k < 4; ++k) values[k] = unit_interval(group.word[k], p.bits);
    scale_and_shift(p, values);
  });
}
LS_CUDA_KERNEL(random_uniform_f64, RandomFill, 256) {
  fill_groups<2, double>(p, [&](const RandomGroup& group, double(&values)[2]) {
    for (int k = 0; k < 2; ++k) values[k] = unit_interval(group.wide(k));
    scale_and_shift(p, values);
  });
}
LS_CUDA_KERNEL(random_normal_f32, RandomFill, 256) {
  fill_groups<4, float>(p, [&](const RandomGroup& group, float(&values)[4]) {
    for (int pair = 0; pair < 2; ++pair) {
      const NormalPair<float> normal = normal_pair(group.word[2 * pair], group.word[2 * pair + 1]);
      values[2 * pair] = normal.first;
      values[2 * pair + 1] = normal.second;
    }
    scale_and_shift(p, values);
  });
}
LS_CUDA_KERNEL(random_normal_f64, RandomFill, 256) {
  fill_groups<2, double>(p, [&](const RandomGroup& group, double(&values)[2]) {
    const NormalPair<double> normal = normal_pair(group.wide(0), group.wide(1));
    values[0] = normal.first;
    values[1] = normal.second;
    scale_and_shift(p, values);
  });
}
LS_CUDA_KERNEL(random_integers, RandomIntegers, 256) {
  fill_groups<2, int64_t>(p, [&](const RandomGroup& group, int64_t(&values)[2]) {
    for (int k = 0; k < 2; ++k) {
      values[k] = static_cast<int64_t>(p.first + below(group.wide(k), p.range));
    }
  });
}
LS_CUDA_KERNEL(random_bits, RandomBits, 256) {
  fill_groups<4, uint8_t>(p, [&](const RandomGroup& group, uint8_t(&values)[4]) {
    for (int k = 0; k < 4; ++k) values[k] = p.kept(group.word[k]);
  });
}
LS_CUDA_KERNEL(random_dropout_f32, RandomDropout, 256) { dropout<float>(p); }
LS_CUDA_KERNEL(random_dropout_f64, RandomDropout, 256) { dropout<double>(p); }
LS_CUDA_KERNEL(random_dropout_f16, RandomDropout, 256) { dropout<Half>(p); }
LS_CUDA_KERNEL(random_dropout_bf16, RandomDropout, 256) { dropout<BFloat16>(p); }

}  // namespace lockstep::cuda
