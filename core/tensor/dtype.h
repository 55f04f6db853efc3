#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// Element types. The order matters: `promote` compares them within a category.
enum class DType : uint8_t { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };
inline constexpr int kDTypeCount = 10;

/// IEEE binary16, storage only: arithmetic is done in f32.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  operator float() const;
};

/// The upper half of an f32, rounded to nearest even. Storage only: arithmetic is done in f32.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

/// Bytes per element.
constexpr size_t size_of(DType dtype) {
  constexpr uint8_t kSizes[kDTypeCount] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(dtype)];
}
constexpr bool is_floating(DType dtype) { return dtype >= DType::kF16; }
constexpr bool is_integral(DType dtype) { return dtype > DType::kBool && dtype < DType::kF16; }

/// "float32", "bfloat16", "int64", "bool", ...: the names that PyTorch uses.
std::string_view name(DType dtype);
/// Inverse of `name`; nullopt for an unknown name.
std::optional<DType> parse_dtype(std::string_view name);
inline std::string to_string(DType dtype) { return std::string(name(dtype)); }

/// The dtype in which two operands of the same category (two dimensioned tensors, say) compute.
DType promote(DType a, DType b);

template <class T>
struct DTypeOf;
#define LS_DTYPE(T, D)                       \
  template <>                                \
  struct DTypeOf<T> {                        \
    static constexpr DType value = DType::D; \
  }
LS_DTYPE(bool, kBool);
LS_DTYPE(uint8_t, kU8);
LS_DTYPE(int8_t, kI8);
LS_DTYPE(int16_t, kI16);
LS_DTYPE(int32_t, kI32);
LS_DTYPE(int64_t, kI64);
LS_DTYPE(Half, kF16);
LS_DTYPE(BFloat16, kBF16);
LS_DTYPE(float, kF32);
LS_DTYPE(double, kF64);
#undef LS_DTYPE
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace lockstep
