#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/dispatch/kernel.h"
#include "kernels/common/functors.h"
#include "kernels/common/lanes.h"
#include "kernels/common/random_numbers.h"
#include "kernels/cpu/random/random_blocks.h"
#include "kernels/cpu/strided_loop.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGroups = RandomBlock::kGroups;

/// Elements that one block of words makes: a float takes one word, a double two.
template <class T>
inline constexpr int64_t kPerBlock = std::is_same_v<T, double> ? 2 * kGroups : 4 * kGroups;

uint64_t wide(const RandomBlock& words, int pair, int64_t group) {
  return joined_words(words.word[2 * pair][group], words.word[2 * pair + 1][group]);
}

void unit_intervals(const RandomBlock& words, int bits, float* values) {
  for (int64_t g = 0; g < kGroups; ++g) {
    for (int k = 0; k < 4; ++k) values[4 * g + k] = unit_interval(words.word[k][g], bits);
  }
}
void unit_intervals(const RandomBlock& words, int, double* values) {
  for (int64_t g = 0; g < kGroups; ++g) {
    for (int pair = 0; pair < 2; ++pair) values[2 * g + pair] = unit_interval(wide(words, pair, g));
  }
}

void normal_pairs(const RandomBlock& words, float* values) {
  for (int pair = 0; pair < 2; ++pair) {
    float first[kGroups];
    float second[kGroups];
    for (int64_t g = 0; g < kGroups; ++g) {
      const NormalPair<float> normal =
          normal_pair(words.word[2 * pair][g], words.word[2 * pair + 1][g]);
      first[g] = normal.first;
      second[g] = normal.second;
    }
    for (int64_t g = 0; g < kGroups; ++g) {
      values[4 * g + 2 * pair] = first[g];
      values[4 * g + 2 * pair + 1] = second[g];
    }
  }
}
void normal_pairs(const RandomBlock& words, double* values) {
  for (int64_t g = 0; g < kGroups; ++g) {
    const NormalPair<double> normal = normal_pair(wide(words, 0, g), wide(words, 1, g));
    values[2 * g] = normal.first;
    values[2 * g + 1] = normal.second;
  }
}

/// out[i] = offset + scale * (number i that `make` fills in), rounded once to the lane.
template <class T, class Make>
void fill_random(const Out& out, const RandomKey& key, double scale, double offset,
                 const Make& make) {
  const StoreFunction store = store_function(out.dtype, lane_of<T>);
  const int64_t element = static_cast<int64_t>(lockstep::size_of(out.dtype));
  const T factor = static_cast<T>(scale);
  const T start = static_cast<T>(offset);
  for_random_blocks(key, out.numel, kPerBlock<T>,
                    [&](const RandomBlock& words, int64_t first, int64_t count) {
                      alignas(64) T values[kPerBlock<T>];
                      make(words, values);
                      for (T& value : values) value = std::fma(value, factor, start);
                      store(count, out.data<char>() + first * element, element, values);
                    });
}

void uniform(const Out& out, const In&, double from, double to, Generator* generator) {
  const RandomKey key = next_call(generator);
  const int bits = out.dtype == DType::kBF16 ? 8 : out.dtype == DType::kF16 ? 11 : 24;
  with_floating_lane(out.dtype, [&]<class T>() {
    fill_random<T>(out, key, to - from, from, [bits](const RandomBlock& words, T* values) {
      unit_intervals(words, bits, values);
    });
  });
}

void normal(const Out& out, const In&, double mean, double std, Generator* generator) {
  const RandomKey key = next_call(generator);
  with_floating_lane(out.dtype, [&]<class T>() {
    fill_random<T>(out, key, std, mean,
                   [](const RandomBlock& words, T* values) { normal_pairs(words, values); });
  });
}

/// keep[i] = 1 with probability p, by one word each, whatever the dtype.
void draw_mask(const RandomBlock& words, double p, uint8_t* keep) {
  const KeptWords kept(p);
  for (int64_t g = 0; g < kGroups; ++g) {
    for (int k = 0; k < 4; ++k) keep[4 * g + k] = kept(words.word[k][g]);
  }
}

void bernoulli(const Out& out, const In&, double p, Generator* generator) {
  const RandomKey key = next_call(generator);
  const StoreFunction store = store_function(out.dtype, Lane::kByte);
  const int64_t element = static_cast<int64_t>(lockstep::size_of(out.dtype));
  for_random_blocks(key, out.numel, 4 * kGroups,
                    [&](const RandomBlock& words, int64_t first, int64_t count) {
                      uint8_t keep[4 * kGroups];
                      draw_mask(words, p, keep);
                      store(count, out.data<char>() + first * element, element, keep);
                    });
}

/// from + floor(u (to - from)) for u of 64 random bits.
void random_from(const Out& out, const In&, int64_t from, std::optional<int64_t> to,
                 Generator* generator) {
  const RandomKey key = next_call(generator);
  const uint64_t first = static_cast<uint64_t>(from);
  // Without an end all numbers up to the largest: one more than the distance to it.
  const uint64_t range = to ? static_cast<uint64_t>(*to) - first : (uint64_t{1} << 63) - first;
  const StoreFunction store = store_function(out.dtype, Lane::kI64);
  const int64_t element = static_cast<int64_t>(lockstep::size_of(out.dtype));
  for_random_blocks(
      key, out.numel, 2 * kGroups, [&](const RandomBlock& words, int64_t begin, int64_t count) {
        int64_t values[2 * kGroups];
        for (int64_t g = 0; g < kGroups; ++g) {
          for (int pair = 0; pair < 2; ++pair) {
            values[2 * g + pair] = static_cast<int64_t>(first + below(wide(words, pair, g), range));
          }
        }
        store(count, out.data<char>() + begin * element, element, values);
      });
}

template <class T>
void drop(const Out& out, const Out& mask, const In& input, double p, const RandomKey& key) {
  const functors::MaskedScale<T> scale{static_cast<T>(p == 1 ? 0 : 1 / (1 - p))};
  const LoadFunction load = load_function(lane_of<T>, input.dtype);
  const StoreFunction store = store_function(out.dtype, lane_of<T>);
  const int64_t element = static_cast<int64_t>(lockstep::size_of(out.dtype));
  for_random_blocks(key, out.numel, 4 * kGroups,
                    [&](const RandomBlock& words, int64_t first, int64_t count) {
                      uint8_t keep[4 * kGroups];
                      alignas(64) T values[4 * kGroups];
                      draw_mask(words, 1 - p, keep);
                      load(count, values, input.data<char>() + first * element, element);
                      for (int64_t i = 0; i < count; ++i) values[i] = scale(values[i], keep[i]);
                      store(count, out.data<char>() + first * element, element, values);
                      std::copy_n(keep, count, mask.data<uint8_t>() + first);
                    });
}

void native_dropout(const Out& out, const Out& mask, const In& input, double p,
                    std::optional<bool> train) {
  // Drawn even where nothing is dropped: a queued call has drawn before it is known.
  const RandomKey key = next_call(nullptr);
  with_floating_lane(
      out.dtype, [&]<class T>() { drop<T>(out, mask, input, train.value_or(true) ? p : 0, key); });
}

void native_dropout_backward(const Out& out, const In& grad, const In& mask, double scale) {
  with_floating_lane(out.dtype, [&]<class T>() {
    elementwise<T, T, uint8_t>(out, functors::MaskedScale<T>{static_cast<T>(scale)}, grad, mask);
  });
}

/// Fisher & Yates: position i changes places with one of 0 .. i.
void randperm(const Out& out, int64_t n, Generator* generator, std::optional<DType>,
              std::optional<Layout>, std::optional<Device>, std::optional<bool>) {
  const RandomKey key = next_call(generator);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  RandomBlock words;
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t group = i / 4;
    if (i == n - 1 || i % (4 * kGroups) == 4 * kGroups - 1) {
      words.draw(key, static_cast<uint64_t>(group / kGroups * kGroups));
    }
    const uint64_t word = words.word[i % 4][group % kGroups];
    const size_t other = static_cast<size_t>((word * static_cast<uint64_t>(i + 1)) >> 32);
    std::swap(order[static_cast<size_t>(i)], order[other]);
  }
  const int64_t element = static_cast<int64_t>(lockstep::size_of(out.dtype));
  store_function(out.dtype, Lane::kI64)(n, out.data<char>(), element, order.data());
}

LS_KERNEL(CPU, "uniform", uniform, Strides::kContiguous);
LS_KERNEL(CPU, "normal", normal, Strides::kContiguous);
LS_KERNEL(CPU, "bernoulli.p", bernoulli, Strides::kContiguous);
LS_KERNEL(CPU, "random.from", random_from, Strides::kContiguous);
LS_KERNEL(CPU, "native_dropout", native_dropout, Strides::kContiguous);
LS_KERNEL(CPU, "native_dropout_backward", native_dropout_backward, Strides::kAny);
LS_KERNEL(CPU, "randperm.generator", randperm, Strides::kContiguous);

}  // namespace

}  // namespace lockstep::cpu
