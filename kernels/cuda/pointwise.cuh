#pragma once

#include <tuple>
#include <utility>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/functor_call.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/pointwise_params.h"

namespace lockstep::cuda {

/// The types of a functor's result, R, and of its arguments, A....
template <class R, class... A>
struct Lanes {
  using Result = R;
  static constexpr int kInputs = sizeof...(A);
  template <int i>
  using Input = std::tuple_element_t<i, std::tuple<A...>>;
};

/// Returns the functor with the state that the host passed.
template <class F>
__device__ inline F functor_of(const PointwiseOperands& operands) {
  if constexpr (std::is_empty_v<F>) {
    return F();
  } else {
    return *reinterpret_cast<const F*>(operands.functor);
  }
}

template <class L, class F, int... i>
__device__ inline void strided_elements(const StridedPointwise& p,
                                        std::integer_sequence<int, i...>) {
  const F functor = functor_of<F>(p.operands);
  const PointwiseOperands& operands = p.operands;
  for (int64_t at = grid_thread(); at < p.numel; at += grid_threads()) {
    int64_t offsets[1 + sizeof...(i)] = {};
    uint32_t rest = static_cast<uint32_t>(at);
    for (int d = 0; d < p.rank; ++d) {
      const bool last = d == p.rank - 1;
      const uint32_t quotient = last ? 0 : p.sizes[d].quotient(rest);
      const uint32_t index = rest - quotient * p.sizes[d].divisor;
      rest = quotient;
      offsets[0] += index * p.strides[0][d];
      ((offsets[i + 1] += index * p.strides[i + 1][d]), ...);
    }
    const auto result = apply(
        functor, load_as<typename L::template Input<i>>(
                     operands.dtype[i + 1],
                     operands.is_number[i + 1]
                         ? static_cast<const void*>(operands.number)
                         : static_cast<const void*>(operands.address[i + 1] + offsets[i + 1]))...);
    store_as(operands.dtype[0], operands.address[0] + offsets[0],
             static_cast<typename L::Result>(result));
  }
}
template <class L, class F>
__device__ inline void strided_pointwise(const StridedPointwise& p) {
  strided_elements<L, F>(p, std::make_integer_sequence<int, L::kInputs>());
}

/// Type that an operand of lane T has in memory when floating operands are stored as E.
template <class T, class E>
using Stored = std::conditional_t<std::is_same_v<T, uint8_t>, uint8_t, E>;

/// Position of a pack in dense operands that consist of rows.
struct PackPlace {
  uint32_t column;                         ///< index of the pack in its row
  int64_t rows[PointwiseOperands::kMost];  ///< byte offset of the row, by operand

  __device__ PackPlace(const DensePointwise& p, int operands, uint32_t pack) {
    uint32_t rest = p.row.quotient(pack);
    column = pack - rest * p.row.divisor;
#pragma unroll
    for (int o = 0; o < PointwiseOperands::kMost; ++o) rows[o] = 0;
#pragma unroll 1
    for (int d = 0; d < p.rank; ++d) {
      const uint32_t quotient = d + 1 == p.rank ? 0 : p.sizes[d].quotient(rest);
      const int64_t index = rest - quotient * p.sizes[d].divisor;
      rest = quotient;
#pragma unroll
      for (int o = 0; o < PointwiseOperands::kMost; ++o) {
        if (o < operands) rows[o] += index * p.strides[o][d];
      }
    }
  }
};

/// The elements of a dense operand that a thread works on: kRun packs of kCount elements each, or
/// one element that stands for all elements of a pack.
template <class T, class E, int kCount, int kRun>
struct DenseInput {
  using Elements = Pack<Stored<T, E>, kCount>;

  const char* data;
  bool is_one;  ///< one element stands for a whole pack
  T one[kRun];
  Elements packs[kRun];

  __device__ DenseInput(const DensePointwise& p, int operand)
      : data(p.operands.address[operand]), is_one(p.is_single[operand]) {
    if (!is_one) return;
    const T value =
        load_as<T>(p.operands.dtype[operand], p.operands.is_number[operand]
                                                  ? static_cast<const void*>(p.operands.number)
                                                  : static_cast<const void*>(data));
#pragma unroll
    for (int r = 0; r < kRun; ++r) one[r] = value;
  }
  __device__ void read(int r, int64_t pack) {
    if (!is_one) packs[r] = reinterpret_cast<const Elements*>(data)[pack];
  }
  __device__ void read(const DensePointwise& p, int operand, int r, const PackPlace& at) {
    if (p.is_single[operand]) return;
    const char* const row = data + at.rows[operand];
    is_one = p.repeats[operand];
    if (is_one) {
      one[r] = convert<T>(*reinterpret_cast<const Stored<T, E>*>(row));
    } else {
      packs[r] = reinterpret_cast<const Elements*>(row)[at.column];
    }
  }
  __device__ T of(int r, int k) const { return is_one ? one[r] : convert<T>(packs[r].at[k]); }
  __device__ T at(int64_t i) const {
    return is_one ? one[0] : convert<T>(reinterpret_cast<const Stored<T, E>*>(data)[i]);
  }
};

template <class E, class L, class F, int... i, class... In>
__device__ inline void dense_elements(const DensePointwise& p, std::integer_sequence<int, i...>,
                                      In... inputs) {
  constexpr int kCount = 16 / sizeof(E);
  constexpr int kRun = static_cast<int>(dense_elements_of_thread(dtype_of<E>)) / kCount;
  using Result = typename L::Result;
  using Out = Stored<Result, E>;
  const F functor = functor_of<F>(p.operands);
  char* const out = p.operands.address[0];
  const auto write = [&](int r, Pack<Out, kCount>* to) {
    Result results[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      results[k] = static_cast<Result>(apply(functor, inputs.of(r, k)...));
    }
    *to = converted_pack<Out, kCount>(results);
  };
  const int64_t packs = p.numel / kCount;
  const int64_t step = grid_threads() * kRun;
  // Each thread issues all its reads before it uses the first, so that their latencies overlap.
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * blockDim.x * kRun + threadIdx.x;
  for (int64_t first = begin; first < packs; first += step) {
    if (p.rank == 0) {
#pragma unroll
      for (int r = 0; r < kRun; ++r) {
        const int64_t at = first + r * blockDim.x;
        if (at < packs) (inputs.read(r, at), ...);
      }
#pragma unroll
      for (int r = 0; r < kRun; ++r) {
        const int64_t at = first + r * blockDim.x;
        if (at < packs) write(r, reinterpret_cast<Pack<Out, kCount>*>(out) + at);
      }
    } else {
#pragma unroll 1
      for (int r = 0; r < kRun; ++r) {
        const int64_t at = first + r * blockDim.x;
        if (at >= packs) break;
        const PackPlace place(p, 1 + sizeof...(In), static_cast<uint32_t>(at));
        (inputs.read(p, i + 1, 0, place), ...);
        write(0, reinterpret_cast<Pack<Out, kCount>*>(out + place.rows[0]) + place.column);
      }
    }
  }
  for (int64_t at = packs * kCount + grid_thread(); at < p.numel; at += grid_threads()) {
    reinterpret_cast<Out*>(out)[at] =
        convert<Out>(static_cast<Result>(apply(functor, inputs.at(at)...)));
  }
}
template <class E, class L, class F, int... i>
__device__ inline void dense_pointwise_of(const DensePointwise& p,
                                          std::integer_sequence<int, i...>) {
  constexpr int kCount = 16 / sizeof(E);
  constexpr int kRun = static_cast<int>(dense_elements_of_thread(dtype_of<E>)) / kCount;
  dense_elements<E, L, F>(p, std::integer_sequence<int, i...>(),
                          DenseInput<typename L::template Input<i>, E, kCount, kRun>(p, i + 1)...);
}
template <class E, class L, class F>
__device__ inline void dense_pointwise(const DensePointwise& p) {
  dense_pointwise_of<E, L, F>(p, std::make_integer_sequence<int, L::kInputs>());
}

/// Lanes by the letters that kernel names have for them (kernels/cuda/pointwise.h).
namespace lanes {
using f = Lanes<float>;
using d = Lanes<double>;
using i = Lanes<int64_t>;
using ff = Lanes<float, float>;
using dd = Lanes<double, double>;
using ii = Lanes<int64_t, int64_t>;
using bb = Lanes<uint8_t, uint8_t>;
using bf = Lanes<uint8_t, float>;
using bd = Lanes<uint8_t, double>;
using bi = Lanes<uint8_t, int64_t>;
using fff = Lanes<float, float, float>;
using ddd = Lanes<double, double, double>;
using iii = Lanes<int64_t, int64_t, int64_t>;
using bbb = Lanes<uint8_t, uint8_t, uint8_t>;
using bff = Lanes<uint8_t, float, float>;
using bdd = Lanes<uint8_t, double, double>;
using bii = Lanes<uint8_t, int64_t, int64_t>;
using ffb = Lanes<float, float, uint8_t>;
using ddb = Lanes<double, double, uint8_t>;
using iib = Lanes<int64_t, int64_t, uint8_t>;
using ffff = Lanes<float, float, float, float>;
using dddd = Lanes<double, double, double, double>;
using iiii = Lanes<int64_t, int64_t, int64_t, int64_t>;
using fbff = Lanes<float, uint8_t, float, float>;
using dbdd = Lanes<double, uint8_t, double, double>;
using ibii = Lanes<int64_t, uint8_t, int64_t, int64_t>;
}  // namespace lanes

}  // namespace lockstep::cuda

// Definitions of kernels. LS_POINTWISE(Add, fff, Add) defines pointwise_Add_fff, of functors::Add,
// for any strides and dtypes. LS_POINTWISE_DENSE also defines pointwise_Add_fff_f32, _bf16 and
// _f16. The first argument must be the functor's kName, by which the host finds the kernel.
#define LS_POINTWISE(Name, L, ...)                                                  \
  static_assert(::lockstep::functors::__VA_ARGS__::kName.view() == #Name);          \
  LS_CUDA_KERNEL(pointwise_##Name##_##L, ::lockstep::cuda::StridedPointwise, 256) { \
    ::lockstep::cuda::strided_pointwise<::lockstep::cuda::lanes::L,                 \
                                        ::lockstep::functors::__VA_ARGS__>(p);      \
  }
#define LS_POINTWISE_DENSE_OF(Name, L, E, Suffix, ...)                                       \
  LS_CUDA_KERNEL(pointwise_##Name##_##L##_##Suffix, ::lockstep::cuda::DensePointwise, 256) { \
    ::lockstep::cuda::dense_pointwise<E, ::lockstep::cuda::lanes::L,                         \
                                      ::lockstep::functors::__VA_ARGS__>(p);                 \
  }
#define LS_POINTWISE_DENSE(Name, L, ...)                                  \
  LS_POINTWISE(Name, L, __VA_ARGS__)                                      \
  LS_POINTWISE_DENSE_OF(Name, L, float, f32, __VA_ARGS__)                 \
  LS_POINTWISE_DENSE_OF(Name, L, ::lockstep::BFloat16, bf16, __VA_ARGS__) \
  LS_POINTWISE_DENSE_OF(Name, L, ::lockstep::Half, f16, __VA_ARGS__)

// Functors that are not templates, with one, two or three inputs, in the floating lanes or in all.
#define LS_FLOATING_1(F) LS_POINTWISE_DENSE(F, ff, F) LS_POINTWISE(F, dd, F)
#define LS_FLOATING_2(F) LS_POINTWISE_DENSE(F, fff, F) LS_POINTWISE(F, ddd, F)
#define LS_FLOATING_3(F) LS_POINTWISE_DENSE(F, ffff, F) LS_POINTWISE(F, dddd, F)
#define LS_ALL_1(F) LS_FLOATING_1(F) LS_POINTWISE(F, ii, F)
#define LS_ALL_2(F) LS_FLOATING_2(F) LS_POINTWISE(F, iii, F)
#define LS_ALL_3(F) LS_FLOATING_3(F) LS_POINTWISE(F, iiii, F)
// Functors that are templates over the lane: F<float>, F<double>, F<int64_t>.
#define LS_FLOATING_OF_1(F) LS_POINTWISE_DENSE(F, ff, F<float>) LS_POINTWISE(F, dd, F<double>)
#define LS_FLOATING_OF_2(F) LS_POINTWISE_DENSE(F, fff, F<float>) LS_POINTWISE(F, ddd, F<double>)
#define LS_FLOATING_OF_3(F) LS_POINTWISE_DENSE(F, ffff, F<float>) LS_POINTWISE(F, dddd, F<double>)
#define LS_ALL_OF_1(F) LS_FLOATING_OF_1(F) LS_POINTWISE(F, ii, F<int64_t>)
#define LS_ALL_OF_2(F) LS_FLOATING_OF_2(F) LS_POINTWISE(F, iii, F<int64_t>)
#define LS_ALL_OF_3(F) LS_FLOATING_OF_3(F) LS_POINTWISE(F, iiii, F<int64_t>)
// Binary functors with a number as the second operand: WithNumber<F, T>.
#define LS_FLOATING_NUMBER(F)                                                        \
  LS_POINTWISE_DENSE(WithNumber_##F, ff, WithNumber<::lockstep::functors::F, float>) \
  LS_POINTWISE(WithNumber_##F, dd, WithNumber<::lockstep::functors::F, double>)
#define LS_ALL_NUMBER(F) \
  LS_FLOATING_NUMBER(F)  \
  LS_POINTWISE(WithNumber_##F, ii, WithNumber<::lockstep::functors::F, int64_t>)
// Functors that return truth values, with one or two inputs.
#define LS_PREDICATE_1(F) LS_POINTWISE_DENSE(F, bf, F) LS_POINTWISE(F, bd, F) LS_POINTWISE(F, bi, F)
#define LS_PREDICATE_2(F) \
  LS_POINTWISE_DENSE(F, bff, F) LS_POINTWISE(F, bdd, F) LS_POINTWISE(F, bii, F)
