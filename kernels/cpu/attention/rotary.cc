#include <algorithm>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/head_strides.h"
#include "kernels/common/turned_heads.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/factory/copy.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 8192;  // minimum elements per task

/// Rows of elements, `stride` apart; the next row begins `step` elements behind one.
template <class T>
struct Rows {
  T* data;
  int64_t stride;
  int64_t step;
};

/// Turns the pairs of `count` rows. `kAdjacent`: all strides are 1, known to the compiler.
template <bool kAdjacent, class T, class C>
void turn_rows(int64_t count, Rows<T> to, Rows<const T> from, Rows<const C> cosine,
               Rows<const C> sine, C sign, int64_t pairs) {
  const int64_t t = kAdjacent ? 1 : to.stride, f = kAdjacent ? 1 : from.stride;
  const int64_t c = kAdjacent ? 1 : cosine.stride, s = kAdjacent ? 1 : sine.stride;
  for (int64_t row = 0; row < count; ++row) {
    // In place `to` is `from`, and each pair is read before it is written.
#pragma GCC ivdep
    for (int64_t i = 0; i < pairs; ++i) {
      const C first = convert<C>(from.data[i * f]);
      const C second = convert<C>(from.data[(i + pairs) * f]);
      const C turned = sign * sine.data[i * s];
      to.data[i * t] = convert<T>(first * cosine.data[i * c] - second * turned);
      to.data[(i + pairs) * t] = convert<T>(second * cosine.data[i * c] + first * turned);
    }
    to.data += to.step;
    from.data += from.step;
    cosine.data += cosine.step;
    sine.data += sine.step;
  }
}
template <class T, class C>
LS_WIDE_VECTORS void turn_adjacent_rows(int64_t count, Rows<T> to, Rows<const T> from,
                                        Rows<const C> cosine, Rows<const C> sine, C sign,
                                        int64_t pairs) {
  turn_rows<true, T, C>(count, to, from, cosine, sine, sign, pairs);
}

template <class T>
void turn(const Out& out, const In& input, const In& cosine, const In& sine, bool inverse) {
  using C = ComputeType<T>;
  const HeadStrides to(out), from(input);
  const int64_t pairs = out.size(-1) / 2;
  const bool adjacent = out.stride(-1) == 1 && input.stride(-1) == 1 && cosine.stride(-1) == 1 &&
                        sine.stride(-1) == 1;
  const auto rows = adjacent ? for_this_cpu(&turn_adjacent_rows<T, C>, &turn_rows<true, T, C>)
                             : &turn_rows<false, T, C>;
  const C sign = inverse ? C(-1) : C(1);
  parallel_for(
      0, out.numel / out.size(-1), std::max<int64_t>(1, kGrain / out.size(-1)),
      [&](int64_t begin, int64_t end) {
        while (begin < end) {  // one head at a time
          const int64_t position = begin % to.positions;
          const int64_t count = std::min(end - begin, to.positions - position);
          rows(count, {out.data<T>() + to.row(begin), to.of_column, to.of_position},
               {input.data<T>() + from.row(begin), from.of_column, from.of_position},
               {cosine.data<C>() + position * cosine.stride(0), cosine.stride(1), cosine.stride(0)},
               {sine.data<C>() + position * sine.stride(0), sine.stride(1), sine.stride(0)}, sign,
               pairs);
          begin += count;
        }
      });
}

void rotary_embedding(const Out& out, const In& input, const In& cosine, const In& sine,
                      bool inverse) {
  if (out.numel == 0) return;
  with_floating_type(out.dtype, [&]<class T>() { turn<T>(out, input, cosine, sine, inverse); });
}

void rotary_of_qkv(const Out& out, const In& qkv, const In& cosine, const In& sine, int64_t heads,
                   int64_t key_heads, bool inverse) {
  if (out.numel == 0) return;
  const TurnedHeads parts(out, heads, key_heads);
  rotary_embedding(parts.heads(out), parts.heads(qkv), cosine, sine, inverse);
  copy_elements(parts.values(out), parts.values(qkv));
}

}  // namespace

LS_KERNEL(CPU, "rotary_embedding", rotary_embedding, Strides::kAny);
LS_KERNEL(CPU, "rotary_of_qkv", rotary_of_qkv, Strides::kContiguous);

}  // namespace lockstep::cpu
