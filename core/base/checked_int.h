#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// Throws ShapeError: a size that `op` computes from its arguments does not fit int64.
[[noreturn]] void throw_int_overflow(std::string_view op);

/// An int64 in the arithmetic of sizes, strides and offsets: `CheckedInt(op, 2) * padding + size`
/// is exact or throws ShapeError naming `op`. `op` must outlive it.
class CheckedInt {
 public:
  CheckedInt(std::string_view op, int64_t value) : op_(op), value_(value) {}

  int64_t value() const { return value_; }

  CheckedInt& operator+=(int64_t other) {
    if (__builtin_add_overflow(value_, other, &value_)) [[unlikely]]
      throw_int_overflow(op_);
    return *this;
  }
  CheckedInt& operator-=(int64_t other) {
    if (__builtin_sub_overflow(value_, other, &value_)) [[unlikely]]
      throw_int_overflow(op_);
    return *this;
  }
  CheckedInt& operator*=(int64_t other) {
    if (__builtin_mul_overflow(value_, other, &value_)) [[unlikely]]
      throw_int_overflow(op_);
    return *this;
  }

  friend CheckedInt operator+(CheckedInt a, int64_t b) { return a += b; }
  friend CheckedInt operator-(CheckedInt a, int64_t b) { return a -= b; }
  friend CheckedInt operator*(CheckedInt a, int64_t b) { return a *= b; }
  friend CheckedInt operator+(CheckedInt a, CheckedInt b) { return a += b.value_; }
  friend CheckedInt operator-(CheckedInt a, CheckedInt b) { return a -= b.value_; }
  friend CheckedInt operator*(CheckedInt a, CheckedInt b) { return a *= b.value_; }

 private:
  std::string_view op_;
  int64_t value_;
};

}  // namespace lockstep
