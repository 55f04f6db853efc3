#include "kernels/cpu/convert.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/converted.h"
#include "kernels/cpu/wide_vectors.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace lockstep::cpu {

namespace {

template <class To, class From>
void load(int64_t n, void* to, const void* from, int64_t stride) {
  To* __restrict out = static_cast<To*>(to);
  if (stride == sizeof(From)) {
    const From* __restrict in = static_cast<const From*>(from);
    int64_t i = 0;
#if defined(__F16C__)
    if constexpr (std::is_same_v<From, HalfWord> && std::is_same_v<To, float>) {
      for (; i + 8 <= n; i += 8) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
      }
    }
#endif
    for (; i < n; ++i) out[i] = converted<To>(in[i]);
  } else if (stride == 0) {
    const To value = converted<To>(*static_cast<const From*>(from));
    if constexpr (std::is_same_v<To, BFloat16>) {  // assigning the struct would store element by
                                                   // element
      std::fill_n(static_cast<uint16_t*>(to), n, value.bits);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = value;
    }
  } else {
    const char* in = static_cast<const char*>(from);
    for (int64_t i = 0; i < n; ++i, in += stride) {
      out[i] = converted<To>(*reinterpret_cast<const From*>(in));
    }
  }
}

template <class To, class From>
void store(int64_t n, void* to, int64_t stride, const void* from) {
  const From* __restrict in = static_cast<const From*>(from);
  if (stride == sizeof(To)) {
    To* __restrict out = static_cast<To*>(to);
    int64_t i = 0;
#if defined(__F16C__)
    if constexpr (std::is_same_v<To, HalfWord> && std::is_same_v<From, float>) {
      for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
      }
    }
#endif
    for (; i < n; ++i) out[i] = converted<To>(in[i]);
  } else {
    char* out = static_cast<char*>(to);
    for (int64_t i = 0; i < n; ++i, out += stride) {
      *reinterpret_cast<To*>(out) = converted<To>(in[i]);
    }
  }
}

template <class To, class From>
LS_WIDE_VECTORS void wide_load(int64_t n, void* to, const void* from, int64_t stride) {
  load<To, From>(n, to, from, stride);
}
template <class To, class From>
LS_WIDE_VECTORS void wide_store(int64_t n, void* to, int64_t stride, const void* from) {
  store<To, From>(n, to, stride, from);
}

/// Loads bool and uint8 as raw bytes; elements of other dtypes become 0 or 1.
template <class From>
LoadFunction load_byte() {
  if constexpr (std::is_same_v<From, Truth> || std::is_same_v<From, uint8_t>) {
    return &load<uint8_t, uint8_t>;
  } else {
    return &load<Truth, From>;
  }
}

template <class From>
LoadFunction load_from(ComputeLane to) {
  switch (to) {
    case ComputeLane::kF32:
      return for_this_cpu(&wide_load<float, From>, &load<float, From>);
    case ComputeLane::kF64:
      return &load<double, From>;
    case ComputeLane::kI64:
      return &load<int64_t, From>;
    case ComputeLane::kByte:
      return load_byte<From>();
    case ComputeLane::kBF16:
      if constexpr (std::is_same_v<From, BFloat16>) return &load<BFloat16, BFloat16>;
  }
  return nullptr;
}

template <class To>
StoreFunction store_to(ComputeLane from) {
  switch (from) {
    case ComputeLane::kF32:
      return for_this_cpu(&wide_store<To, float>, &store<To, float>);
    case ComputeLane::kF64:
      return &store<To, double>;
    case ComputeLane::kI64:
      return &store<To, int64_t>;
    case ComputeLane::kByte:
      return &store<To, uint8_t>;
    case ComputeLane::kBF16:
      if constexpr (std::is_same_v<To, BFloat16>) return &store<BFloat16, BFloat16>;
  }
  return nullptr;
}

}  // namespace

LoadFunction load_function(ComputeLane to, DType from) {
  switch (from) {
    case DType::kBool:
      return load_from<Truth>(to);
    case DType::kU8:
      return load_from<uint8_t>(to);
    case DType::kI8:
      return load_from<int8_t>(to);
    case DType::kI16:
      return load_from<int16_t>(to);
    case DType::kI32:
      return load_from<int32_t>(to);
    case DType::kI64:
      return load_from<int64_t>(to);
    case DType::kF16:
      return load_from<HalfWord>(to);
    case DType::kBF16:
      return load_from<BFloat16>(to);
    case DType::kF32:
      return load_from<float>(to);
    case DType::kF64:
      return load_from<double>(to);
  }
  return nullptr;
}

StoreFunction store_function(DType to, ComputeLane from) {
  switch (to) {
    case DType::kBool:
      return store_to<Truth>(from);
    case DType::kU8:
      return store_to<uint8_t>(from);
    case DType::kI8:
      return store_to<int8_t>(from);
    case DType::kI16:
      return store_to<int16_t>(from);
    case DType::kI32:
      return store_to<int32_t>(from);
    case DType::kI64:
      return store_to<int64_t>(from);
    case DType::kF16:
      return store_to<HalfWord>(from);
    case DType::kBF16:
      return store_to<BFloat16>(from);
    case DType::kF32:
      return store_to<float>(from);
    case DType::kF64:
      return store_to<double>(from);
  }
  return nullptr;
}

}  // namespace lockstep::cpu
