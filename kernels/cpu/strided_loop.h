#pragma once

#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/tensor/kernel_arguments.h"
#include "kernels/common/functor_type.h"
#include "kernels/common/functors.h"
#include "kernels/common/number_operand.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/step_constants.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

/// One pass over n contiguous elements: out[i] = functor(in[0][i], in[1][i], ...). An input may be
/// the output itself, but must not overlap it otherwise.
using InnerLoop = void (*)(int64_t n, void* out, const void* const* in, const void* functor);

/// Parameters of `strided_loop` for one operator.
struct LoopSpec {
  InnerLoop loop;
  const void* functor;
  bool heavy;            ///< much arithmetic per element
  ComputeLane lanes[4];  ///< of the output, then of each input
  /// The loop on bf16 elements, for f32 lanes; null if converting through buffers is as fast.
  InnerLoop bf16_loop = nullptr;
  /// Size of the functor if its bytes may be copied and kept, else 0.
  size_t functor_bytes = 0;
  /// Bit i is set if input i is a NumberOperand.
  uint32_t numbers = 0;
  /// The functor's type as C++ writes it, if it is one that headers define; else empty.
  std::string_view functor_name = {};

  /// Minimum number of elements per task.
  int64_t grain() const { return heavy ? 8192 : 32768; }
};

/// Runs an elementwise operator over tensors of any strides and dtypes. Inputs broadcast to out's
/// shape; operands that are not stored in the loop's lane type, or not contiguous, go through a
/// small buffer. Parallel; an element's result does not depend on how the range is split.
void strided_loop(const Out& out, std::span<const In* const> inputs, const LoopSpec& spec);

namespace detail {

template <class F>
concept Heavy = requires {
  F::kHeavy;
};
template <class F>
inline constexpr size_t kKeptBytes =
    std::is_trivially_copyable_v<F> && !functors::RefersOutside<F> && sizeof(F) <= kMostFunctorBytes
        ? sizeof(F)
        : 0;

template <class R, class F, class... A>
void loop_over(int64_t n, R* out, const F& functor, const A*... in) {
// Inputs may equal the output, which is no dependence between different elements.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = functor(in[i]...);
}

/// For functors with `rare` arguments: blocks without any take the vectorised loop.
template <class R, class F, class... A>
void loop_with_rare(int64_t n, R* out, const F& functor, const A*... in) {
  constexpr int64_t kBlock = 512;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = n - first < kBlock ? n - first : kBlock;
    int any = 0;
    for (int64_t i = first; i < first + count; ++i) any |= F::rare(in[i]...) ? 1 : 0;
    if (any == 0) {
      loop_over(count, out + first, functor, in + first...);
    } else {
      for (int64_t i = first; i < first + count; ++i) {
        out[i] = F::rare(in[i]...) ? F::exact(in[i]...) : functor(in[i]...);
      }
    }
  }
}

template <class F, class R, class... A, size_t... I>
void unpacked_loop(int64_t n, R* out, const void* const* in, const F& functor,
                   std::index_sequence<I...>) {
  if constexpr (std::is_same_v<R, float> && functors::HasRare<F, A...>) {
    loop_with_rare(n, out, functor, static_cast<const A*>(in[I])...);
  } else {
    loop_over(n, out, functor, static_cast<const A*>(in[I])...);
  }
}

template <class F, class R, class... A>
void inner_loop(int64_t n, void* out, const void* const* in, const void* functor) {
  const F copy = *static_cast<const F*>(functor);  // cannot alias the output
  unpacked_loop<F, R, A...>(n, static_cast<R*>(out), in, copy, std::index_sequence_for<A...>());
}
template <class F, class R, class... A>
LS_WIDE_VECTORS void wide_inner_loop(int64_t n, void* out, const void* const* in,
                                     const void* functor) {
  inner_loop<F, R, A...>(n, out, in, functor);
}

/// Loops of integers alone are rare where time matters, and have no wide variant.
template <class F, class R, class... A>
InnerLoop chosen_loop() {
  if constexpr (std::is_floating_point_v<R> || (std::is_floating_point_v<A> || ...)) {
    return for_this_cpu(&wide_inner_loop<F, R, A...>, &inner_loop<F, R, A...>);
  }
  return &inner_loop<F, R, A...>;
}

/// Converts bf16 operands within the loop instead of in a separate pass per operand.
template <class F, class... A, size_t... I>
void bf16_loop_over(int64_t n, BFloat16* out, const void* const* in, const F& functor,
                    std::index_sequence<I...>) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[i] = BFloat16(functor(static_cast<A>(static_cast<const BFloat16*>(in[I])[i])...));
  }
}
template <class F, class... A>
LS_WIDE_VECTORS void wide_bf16_loop(int64_t n, void* out, const void* const* in,
                                    const void* functor) {
  const F copy = *static_cast<const F*>(functor);
  bf16_loop_over<F, A...>(n, static_cast<BFloat16*>(out), in, copy,
                          std::index_sequence_for<A...>());
}
template <class F, class R, class... A>
InnerLoop chosen_bf16_loop() {
  constexpr bool kInF32 = std::is_same_v<R, float> && (std::is_same_v<A, float> && ...);
  if constexpr (kInF32 && !functors::HasRare<F, A...>) {
    return for_this_cpu<InnerLoop>(&wide_bf16_loop<F, A...>, nullptr);
  }
  return nullptr;
}

}  // namespace detail

/// out = functor(inputs...), with lane R for the output and lanes A... for the inputs, each an In
/// or a NumberOperand.
template <class R, class... A, class F, class... I>
void elementwise(const Out& out, const F& functor, const I&... inputs) {
  static_assert(sizeof...(A) == sizeof...(I));
  const In* const list[] = {&tensor_of(inputs)...};
  uint32_t numbers = 0, bit = 1;
  ((numbers |= std::is_same_v<I, NumberOperand> ? bit : 0, bit *= 2), ...);
  strided_loop(out, list,
               {detail::chosen_loop<F, R, A...>(),
                &functor,
                detail::Heavy<F>,
                {lane_of<R>, lane_of<A>...},
                detail::chosen_bf16_loop<F, R, A...>(),
                detail::kKeptBytes<F>,
                numbers,
                kernel_text::functor_type<F>()});
}

}  // namespace lockstep::cpu
