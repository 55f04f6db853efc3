#include "kernels/pointwise/logic.h"

#include "kernels/pointwise/backend.h"
#include "kernels/pointwise/compare.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using namespace functors;

bool is_byte(DType dtype) { return dtype == DType::kBool || dtype == DType::kU8; }

/// Combines bool and uint8 masks as raw bytes, without conversion.
template <class F>
void logical(const Out& out, const In& self, const In& other) {
  if (is_byte(self.dtype) && is_byte(other.dtype)) {
    return elementwise<uint8_t, uint8_t, uint8_t>(out, F(), self, other);
  }
  with_lane(self.dtype, [&]<class T>() { elementwise<uint8_t, T, T>(out, F(), self, other); });
}

/// bool operands of byte operators are 0 or 1, the numbers that they promote to.
template <class F>
void bitwise(const Out& out, const In& self, const In& other) {
  if (is_byte(out.dtype) && is_byte(self.dtype) && is_byte(other.dtype)) {
    elementwise<uint8_t, uint8_t, uint8_t>(out, F(), self, other);
  } else {
    elementwise<int64_t, int64_t, int64_t>(out, F(), self, other);
  }
}
template <class F>
void bitwise_number(const Out& out, const In& self, Scalar other) {
  elementwise<int64_t, int64_t, int64_t>(out, F(), self, NumberOperand(other, out.dtype));
}
void bitwise_not(const Out& out, const In& self) {
  if (out.dtype == DType::kBool) return elementwise<uint8_t, uint8_t>(out, LogicalNot(), self);
  elementwise<int64_t, int64_t>(out, BitwiseNot(), self);
}

int64_t bits_of(DType dtype) { return static_cast<int64_t>(size_of(dtype)) * 8; }
template <class Operand>
void shift_left_by(const Out& out, const In& self, const Operand& other) {
  elementwise<int64_t, int64_t, int64_t>(out, ShiftLeft{bits_of(out.dtype)}, self, other);
}
template <class Operand>
void shift_right_by(const Out& out, const In& self, const Operand& other) {
  // An unsigned byte's sign bit, always 0, is bit 8, above its 8 value bits.
  const int64_t bits = bits_of(out.dtype) + (out.dtype == DType::kU8 ? 1 : 0);
  elementwise<int64_t, int64_t, int64_t>(out, ShiftRight{bits}, self, other);
}
void shift_left(const Out& out, const In& self, const In& other) {
  shift_left_by(out, self, other);
}
void shift_right(const Out& out, const In& self, const In& other) {
  shift_right_by(out, self, other);
}
void shift_left_number(const Out& out, const In& self, Scalar other) {
  shift_left_by(out, self, NumberOperand(other, out.dtype));
}
void shift_right_number(const Out& out, const In& self, Scalar other) {
  shift_right_by(out, self, NumberOperand(other, out.dtype));
}

void isinf(const Out& out, const In& self) {
  with_lane(self.dtype, [&]<class T>() { elementwise<uint8_t, T>(out, IsInfinite(), self); });
}
void isclose(const Out& out, const In& self, const In& other, double rtol, double atol,
             bool equal_nan) {
  with_lane(self.dtype, [&]<class T>() {
    elementwise<uint8_t, T, T>(out, IsClose{rtol, atol, equal_nan}, self, other);
  });
}

LS_POINTWISE_KERNEL("logical_and", logical<LogicalAnd>);
LS_POINTWISE_KERNEL("logical_or", logical<LogicalOr>);
LS_POINTWISE_KERNEL("logical_xor", logical<LogicalXor>);
LS_POINTWISE_KERNEL("isinf", isinf);
LS_POINTWISE_KERNEL("isclose", isclose);
LS_POINTWISE_KERNEL("bitwise_and.Tensor", bitwise<BitwiseAnd>);
LS_POINTWISE_KERNEL("bitwise_or.Tensor", bitwise<BitwiseOr>);
LS_POINTWISE_KERNEL("bitwise_xor.Tensor", bitwise<BitwiseXor>);
LS_POINTWISE_KERNEL("bitwise_and.Scalar", bitwise_number<BitwiseAnd>);
LS_POINTWISE_KERNEL("bitwise_or.Scalar", bitwise_number<BitwiseOr>);
LS_POINTWISE_KERNEL("bitwise_xor.Scalar", bitwise_number<BitwiseXor>);
LS_POINTWISE_KERNEL("bitwise_not", bitwise_not);
LS_POINTWISE_KERNEL("bitwise_left_shift.Tensor", shift_left);
LS_POINTWISE_KERNEL("bitwise_right_shift.Tensor", shift_right);
LS_POINTWISE_KERNEL("bitwise_left_shift.Tensor_Scalar", shift_left_number);
LS_POINTWISE_KERNEL("bitwise_right_shift.Tensor_Scalar", shift_right_number);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
