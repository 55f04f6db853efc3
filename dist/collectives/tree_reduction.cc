#include "dist/collectives/tree_reduction.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/base/check.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace lockstep::dist {

namespace {

bool has_16_bits(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

constexpr int64_t kLanes = 8;
using Shorts [[gnu::vector_size(2 * kLanes)]] = uint16_t;
using Words [[gnu::vector_size(4 * kLanes)]] = uint32_t;
using Floats [[gnu::vector_size(4 * kLanes)]] = float;

void widen_vector(BFloat16, const std::byte* from, float* to) {
  Shorts values;
  std::memcpy(&values, from, sizeof(values));
  const Words words = __builtin_convertvector(values, Words) << 16;
  std::memcpy(to, &words, sizeof(words));
}

void narrow_vector(BFloat16, const float* from, std::byte* to) {
  Floats values;
  std::memcpy(&values, from, sizeof(values));
  Words bits;
  std::memcpy(&bits, from, sizeof(bits));
  const Words rounded =
      values == values ? bits + 0x7fffu + ((bits >> 16) & 1u) : Words{} + 0x7fc00000u;
  const Shorts result = __builtin_convertvector(rounded >> 16, Shorts);
  std::memcpy(to, &result, sizeof(result));
}

void widen_vector(Half, const std::byte* from, float* to) {
#if defined(__F16C__)
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  Half values[kLanes];
  std::memcpy(values, from, sizeof(values));
  std::copy_n(values, kLanes, to);
#endif
}

void narrow_vector(Half, const float* from, std::byte* to) {
#if defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(_mm256_loadu_ps(from), 0));
#else
  Half values[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) values[i] = Half(from[i]);
  std::memcpy(to, values, sizeof(values));
#endif
}

/// The last elements, fewer than a vector has, are padded and go through the same vectors.
template <class T>
void widen(const std::byte* from, float* to, int64_t count) {
  for (; count >= kLanes; count -= kLanes, from += kLanes * sizeof(T), to += kLanes) {
    widen_vector(T{}, from, to);
  }
  std::byte part[kLanes * sizeof(T)] = {};
  float wide[kLanes];
  std::memcpy(part, from, static_cast<size_t>(count) * sizeof(T));
  widen_vector(T{}, part, wide);
  std::copy_n(wide, count, to);
}

template <class T>
void narrow(const float* from, std::byte* to, int64_t count) {
  for (; count >= kLanes; count -= kLanes, from += kLanes, to += kLanes * sizeof(T)) {
    narrow_vector(T{}, from, to);
  }
  float part[kLanes] = {};
  std::byte result[kLanes * sizeof(T)];
  std::copy_n(from, count, part);
  narrow_vector(T{}, part, result);
  std::memcpy(to, result, static_cast<size_t>(count) * sizeof(T));
}

// Works on pieces of up to 2 KiB, so that partial results stay in the cache.
constexpr size_t kPiece = 2048;
constexpr size_t kMostHeight = 64;

/// The reduction of one piece. The partial result at some height of the stack is stored in
/// room[height], unless it is a source.
class Piece {
 public:
  Piece(const OrderedReduction& how, DType kept)
      : how_(how),
        kept_(kept),
        combine_(reduction_of_partials(how.reduction)),
        scales_(how.reduction.op == ReduceOp::kPremultipliedSum) {}

  /// Reduces `count` elements from element `first` on.
  void reduce(std::span<const void* const> sources, std::byte* out, size_t first, int64_t count) {
    std::byte* const result = out + first * size_of(how_.to);
    height_ = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      push(static_cast<const std::byte*>(sources[i]) + first * size_of(how_.from), count);
      for (int join = 0; join < how_.joins[i]; ++join) {
        const bool last = i + 1 == sources.size() && height_ == 2 && how_.to == kept_;
        this->join(last ? result : nullptr, count);
      }
    }
    LS_ASSERT(height_ == 1);
    finish(result, count);
  }

 private:
  void push(const std::byte* source, int64_t count) {
    LS_ASSERT(height_ < kMostHeight);
    std::byte* const room = room_[height_];
    const void* value = source;
    if (how_.from != kept_) {
      auto* const to = reinterpret_cast<float*>(room);
      how_.from == DType::kF16 ? widen<Half>(source, to, count)
                               : widen<BFloat16>(source, to, count);
      value = room;
    }
    if (scales_) {
      dist::reduce(kept_, how_.reduction, {&value, 1}, room, count);
      value = room;
    }
    stack_[height_++] = value;
  }

  void join(std::byte* result, int64_t count) {
    LS_ASSERT(height_ >= 2);
    --height_;
    void* const sum = result != nullptr ? result : room_[height_ - 1];
    dist::reduce(kept_, combine_, {stack_ + height_ - 1, 2}, sum, count);
    stack_[height_ - 1] = sum;
  }

  void finish(std::byte* result, int64_t count) const {
    const void* const from = stack_[0];
    if (how_.to != kept_) {
      const auto* const wide = static_cast<const float*>(from);
      how_.to == DType::kF16 ? narrow<Half>(wide, result, count)
                             : narrow<BFloat16>(wide, result, count);
    } else if (from != result) {
      std::memcpy(result, from, static_cast<size_t>(count) * size_of(kept_));
    }
  }

  const OrderedReduction& how_;
  DType kept_;
  Reduction combine_;
  bool scales_;
  size_t height_ = 0;
  const void* stack_[kMostHeight];
  alignas(64) std::byte room_[kMostHeight][kPiece];
};

}  // namespace

DType partial_dtype(DType dtype, ReduceOp op) {
  const bool is_exact = op == ReduceOp::kMin || op == ReduceOp::kMax;
  return has_16_bits(dtype) && !is_exact ? DType::kF32 : dtype;
}

Reduction reduction_of_partials(const Reduction& reduction) {
  return reduction.op == ReduceOp::kPremultipliedSum ? Reduction{} : Reduction{reduction.op};
}

void reduce_in_order(const OrderedReduction& how, std::span<const void* const> sources, void* out,
                     int64_t count) {
  if (how.joins.empty()) {
    LS_ASSERT(how.from == how.to);
    return reduce(how.from, how.reduction, sources, out, count);
  }
  LS_ASSERT(sources.size() == how.joins.size());
  const DType kept = how.from == how.to      ? partial_dtype(how.from, how.reduction.op)
                     : has_16_bits(how.from) ? how.to
                                             : how.from;
  Piece piece(how, kept);
  const auto most = static_cast<int64_t>(kPiece / size_of(kept));
  for (int64_t first = 0; first < count; first += most) {
    piece.reduce(sources, static_cast<std::byte*>(out), static_cast<size_t>(first),
                 std::min(most, count - first));
  }
}

}  // namespace lockstep::dist
