#pragma once

// CUDA device code for g++: included before every .cu file that is compiled for the emulated GPU.
// Device features that are missing here do not compile.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/emulation/atomics.h"
#include "tests/emulation/block.h"
#include "tests/emulation/kernels.h"
#include "tests/emulation/vector_types.h"
#include "tests/emulation/warp.h"

// NOLINTBEGIN: the names are CUDA's.
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
// Blocks run one after another, so a static variable is enough. Its ABI tag marks its symbol, by
// which each launch finds it and fills it with NaN.
#define __shared__ static __attribute__((abi_tag("ls_shared")))

#if defined(LS_EMULATED_MODULE)
/// In a module that is compiled at run time (fake_nvrtc.h), whose kernels are found by their
/// symbols.
#define LS_CUDA_KERNEL(name, Params, threads)                                         \
  static void name(const Params& p);                                                  \
  extern "C" __attribute__((visibility("default")))                                   \
  const ::lockstep::emulation::Kernel ls_module_##name{                               \
      #name, sizeof(Params), threads,                                                 \
      [](const void* parameters) { name(*static_cast<const Params*>(parameters)); }}; \
  static void name([[maybe_unused]] const Params& p)
#else
/// Like core/cuda/kernel.cuh for nvcc; here a kernel is a function registered in a table.
#define LS_CUDA_KERNEL(name, Params, threads)                                                  \
  static void name(const Params& p);                                                           \
  [[maybe_unused]] static const ::lockstep::emulation::Registration ls_emulated_##name(        \
      {#name, sizeof(Params), threads,                                                         \
       [](const void* parameters) { name(*static_cast<const Params*>(parameters)); }});        \
  static_assert(                                                                               \
      sizeof(Params) <= 4096 && alignof(Params) <= 16 && std::is_trivially_copyable_v<Params>, \
      "parameters are plain data of at most 4 KB");                                            \
  static void name([[maybe_unused]] const Params& p)
#endif

#define LS_CUDA_KERNEL_RESIDENT(name, Params, threads, blocks) LS_CUDA_KERNEL(name, Params, threads)

extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
inline constexpr int warpSize = 32;

namespace lockstep::cuda {

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulation::dynamic_shared_memory());
}

}  // namespace lockstep::cuda

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <class T>
void __stcg(T* address, std::type_identity_t<T> value) {
  *address = value;
}

inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }

inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __popcll(unsigned long long bits) { return std::popcount(bits); }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }
inline int __clzll(long long bits) {
  return std::countl_zero(static_cast<unsigned long long>(bits));
}
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(uint64_t{a} * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
inline double rsqrt(double value) { return 1.0 / std::sqrt(value); }
inline float rsqrt(float value) { return rsqrtf(value); }

// For a number and NaN, returns the number.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
// NOLINTEND
