#include "dist/collectives/reduction.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/base/check.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace lockstep::dist {

namespace {

// Loops use the compiler's vector extensions, so that they are fast at every optimisation level.
#if defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
template <class T>
using Vector [[gnu::vector_size(kVectorBytes)]] = T;

/// Elements that are computed in their storage type.
template <class T>
struct Plain {
  using Values = Vector<T>;
  using Number = T;
  static constexpr int kBytes = kVectorBytes;  ///< bytes of memory that one vector holds
  static constexpr int kElementBytes = sizeof(T);
  static Values load(const std::byte* from) {
    Values values;
    std::memcpy(&values, from, sizeof(values));
    return values;
  }
  static void store(std::byte* to, Values values) { std::memcpy(to, &values, sizeof(values)); }
};

constexpr int kFloats = kVectorBytes / sizeof(float);
using Floats = Vector<float>;
using Words = Vector<uint32_t>;

/// bf16 elements, computed in f32. Each 32-bit word holds two elements, which are split and merged
/// by shifts and masks without moving data between vector lanes.
struct BFloat16Lane {
  struct Values {
    Floats low;
    Floats high;
  };
  using Number = float;
  static constexpr int kBytes = kVectorBytes;
  static constexpr int kElementBytes = 2;
  static Values load(const std::byte* from) {
    const Words words = Plain<uint32_t>::load(from);
    return {std::bit_cast<Floats>(words << 16), std::bit_cast<Floats>(words & 0xffff0000u)};
  }
  static void store(std::byte* to, Values values) {
    Plain<uint32_t>::store(to, rounded(values.low) >> 16 | (rounded(values.high) & 0xffff0000u));
  }
  static Words rounded(Floats values) {
    const Words u = std::bit_cast<Words>(values);
    return values == values ? u + 0x7fffu + ((u >> 16) & 1u) : Words{} + 0x7fc00000u;
  }
};

struct HalfLane {
  using Values = Floats;
  using Number = float;
  static constexpr int kBytes = kFloats * 2;
  static constexpr int kElementBytes = 2;
#if defined(__F16C__)
  static Floats load(const std::byte* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static void store(std::byte* to, Floats values) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(values, 0));
  }
#else
  static Floats load(const std::byte* from) {
    Half halves[kFloats];
    std::memcpy(halves, from, sizeof(halves));
    Floats values;
    for (int i = 0; i < kFloats; ++i) values[i] = halves[i];
    return values;
  }
  static void store(std::byte* to, Floats values) {
    Half halves[kFloats];
    for (int i = 0; i < kFloats; ++i) halves[i] = Half(values[i]);
    std::memcpy(to, halves, sizeof(halves));
  }
#endif
};

// Reduction operators: `first` maps the first value, and operator() combines the result so far with
// the next value.

struct Sum {
  explicit Sum(double) {}
  template <class V>
  V first(V a) const {
    return a;
  }
  template <class V>
  V operator()(V a, V b) const {
    return a + b;
  }
};

struct Product : Sum {
  using Sum::Sum;
  template <class V>
  V operator()(V a, V b) const {
    return a * b;
  }
};

/// Returns the first of -0 and 0, and the first of several NaNs.
struct Min : Sum {
  using Sum::Sum;
  template <class V>
  V operator()(V a, V b) const {
    return (~(a <= b) & (a == a)) ? b : a;
  }
};

struct Max : Sum {
  using Sum::Sum;
  template <class V>
  V operator()(V a, V b) const {
    return (~(a >= b) & (a == a)) ? b : a;
  }
};

template <class Number>
struct PremultipliedSum {
  explicit PremultipliedSum(double f) : factor(static_cast<Number>(f)) {}
  template <class V>
  V first(V a) const {
    return a * factor;
  }
  template <class V>
  V operator()(V a, V b) const {
    return a + b * factor;
  }
  Number factor;
};

template <class Op, class V>
V first(const Op& op, V a) {
  return op.first(a);
}
template <class Op>
BFloat16Lane::Values first(const Op& op, BFloat16Lane::Values a) {
  return {op.first(a.low), op.first(a.high)};
}
template <class Op, class V>
V next(const Op& op, V a, V b) {
  return op(a, b);
}
template <class Op>
BFloat16Lane::Values next(const Op& op, BFloat16Lane::Values a, BFloat16Lane::Values b) {
  return {op(a.low, b.low), op(a.high, b.high)};
}

using Sources = std::span<const void* const>;

/// Reduces `bytes` bytes at `offset` of every source: a whole block of four vectors or, at the end,
/// fewer bytes, which are padded and go through the same vectors.
template <class Lane, class Op, bool kWhole>
[[gnu::always_inline]] inline void reduce_block(Sources sources, std::byte* out, size_t offset,
                                                size_t bytes, Op op) {
  using Values = typename Lane::Values;
  constexpr size_t kBytes = Lane::kBytes;
  std::byte part[4 * kBytes];
  if constexpr (!kWhole) std::memset(part, 0, sizeof(part));
  const auto block = [&](size_t source) {
    const std::byte* from = static_cast<const std::byte*>(sources[source]) + offset;
    if constexpr (kWhole) return from;
    std::memcpy(part, from, bytes);
    return const_cast<const std::byte*>(part);
  };
  const std::byte* from = block(0);
  Values a = first(op, Lane::load(from));
  Values b = first(op, Lane::load(from + kBytes));
  Values c = first(op, Lane::load(from + 2 * kBytes));
  Values d = first(op, Lane::load(from + 3 * kBytes));
  for (size_t i = 1; i < sources.size(); ++i) {
    from = block(i);
    a = next(op, a, Lane::load(from));
    b = next(op, b, Lane::load(from + kBytes));
    c = next(op, c, Lane::load(from + 2 * kBytes));
    d = next(op, d, Lane::load(from + 3 * kBytes));
  }
  std::byte* to = kWhole ? out + offset : part;
  Lane::store(to, a);
  Lane::store(to + kBytes, b);
  Lane::store(to + 2 * kBytes, c);
  Lane::store(to + 3 * kBytes, d);
  if constexpr (!kWhole) std::memcpy(out + offset, part, bytes);
}

using Loop = void (*)(Sources sources, void* out, int64_t count, double factor);

template <class Lane, class Op>
void reduce_all(Sources sources, void* out, int64_t count, double factor) {
  constexpr size_t kBlock = 4 * Lane::kBytes;
  const Op op(factor);
  std::byte* to = static_cast<std::byte*>(out);
  const size_t bytes = static_cast<size_t>(count) * Lane::kElementBytes;
  size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
    reduce_block<Lane, Op, true>(sources, to, at, kBlock, op);
  }
  if (at < bytes) reduce_block<Lane, Op, false>(sources, to, at, bytes - at, op);
}

template <class Lane>
Loop floating_loop(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return &reduce_all<Lane, Sum>;
    case ReduceOp::kProduct:
      return &reduce_all<Lane, Product>;
    case ReduceOp::kMin:
      return &reduce_all<Lane, Min>;
    case ReduceOp::kMax:
      return &reduce_all<Lane, Max>;
    case ReduceOp::kPremultipliedSum:
      return &reduce_all<Lane, PremultipliedSum<typename Lane::Number>>;
  }
  return nullptr;
}

template <class T>
Loop integer_loop(ReduceOp op) {
  using Wrapping = Plain<std::make_unsigned_t<T>>;
  switch (op) {
    case ReduceOp::kSum:
      return &reduce_all<Wrapping, Sum>;
    case ReduceOp::kProduct:
      return &reduce_all<Wrapping, Product>;
    case ReduceOp::kMin:
      return &reduce_all<Plain<T>, Min>;
    case ReduceOp::kMax:
      return &reduce_all<Plain<T>, Max>;
    case ReduceOp::kPremultipliedSum:
      return nullptr;
  }
  return nullptr;
}

Loop loop_of(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return integer_loop<uint8_t>(op);
    case DType::kI8:
      return integer_loop<int8_t>(op);
    case DType::kI16:
      return integer_loop<int16_t>(op);
    case DType::kI32:
      return integer_loop<int32_t>(op);
    case DType::kI64:
      return integer_loop<int64_t>(op);
    case DType::kF16:
      return floating_loop<HalfLane>(op);
    case DType::kBF16:
      return floating_loop<BFloat16Lane>(op);
    case DType::kF32:
      return floating_loop<Plain<float>>(op);
    case DType::kF64:
      return floating_loop<Plain<double>>(op);
  }
  return nullptr;
}

}  // namespace

std::string to_string(const Reduction& reduction) {
  switch (reduction.op) {
    case ReduceOp::kSum:
      return reduction.leaves > 0 ? fmt::format("sum of {} leaves", reduction.leaves) : "sum";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kPremultipliedSum:
      return fmt::format("premultiplied sum by {}", reduction.factor);
  }
  return "unknown reduction";
}

void check_reduction(const char* op, DType dtype, const Reduction& reduction) {
  const bool is_order = reduction.op == ReduceOp::kMin || reduction.op == ReduceOp::kMax;
  LS_CHECK(dtype != DType::kBool || is_order, DTypeError,
           "[{}] booleans have no {}: expected min (all) or max (any). Reduce uint8 to count.", op,
           to_string(reduction));
  LS_CHECK(reduction.op != ReduceOp::kPremultipliedSum || is_floating(dtype), DTypeError,
           "[{}] {} has no {}: expected a floating-point dtype. Use sum.", op, name(dtype),
           to_string(reduction));
}

void reduce(DType dtype, const Reduction& reduction, std::span<const void* const> sources,
            void* out, int64_t count) {
  const Loop loop = loop_of(dtype, reduction.op);
  LS_ASSERT(loop != nullptr && !sources.empty());
  loop(sources, out, count, reduction.factor);
}

}  // namespace lockstep::dist
