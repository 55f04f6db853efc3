#include "core/library.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/number_operand.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/pointwise_functors.h"

namespace lockstep::cpu {

namespace {

using namespace functors;

bool is_byte(DType dtype) { return dtype == DType::kBool || dtype == DType::kU8; }

/// Masks are combined as the bytes they are.
template <class F>
void logical(const Out& out, const In& self, const In& other) {
  if (is_byte(self.dtype) && is_byte(other.dtype)) {
    return elementwise<uint8_t, uint8_t, uint8_t>(out, F(), self, other);
  }
  with_lane(self.dtype, [&]<class T>() { elementwise<uint8_t, T, T>(out, F(), self, other); });
}

/// A bool among bytes is 0 or 1, so that it counts as the number that it promotes to.
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
  bitwise<F>(out, self, NumberOperand(other, out.dtype).in());
}
void bitwise_not(const Out& out, const In& self) {
  if (out.dtype == DType::kBool) return elementwise<uint8_t, uint8_t>(out, LogicalNot(), self);
  elementwise<int64_t, int64_t>(out, BitwiseNot(), self);
}

int64_t bits_of(DType dtype) { return static_cast<int64_t>(size_of(dtype)) * 8; }
void shift_left(const Out& out, const In& self, const In& other) {
  elementwise<int64_t, int64_t, int64_t>(out, ShiftLeft{bits_of(out.dtype)}, self, other);
}
void shift_right(const Out& out, const In& self, const In& other) {
  // An unsigned byte has its sign, 0, above its 8 bits.
  const int64_t bits = bits_of(out.dtype) + (out.dtype == DType::kU8 ? 1 : 0);
  elementwise<int64_t, int64_t, int64_t>(out, ShiftRight{bits}, self, other);
}
void shift_left_number(const Out& out, const In& self, Scalar other) {
  shift_left(out, self, NumberOperand(other, out.dtype).in());
}
void shift_right_number(const Out& out, const In& self, Scalar other) {
  shift_right(out, self, NumberOperand(other, out.dtype).in());
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

LS_KERNEL(CPU, "logical_and", logical<LogicalAnd>, Strides::kAny);
LS_KERNEL(CPU, "logical_or", logical<LogicalOr>, Strides::kAny);
LS_KERNEL(CPU, "logical_xor", logical<LogicalXor>, Strides::kAny);
LS_KERNEL(CPU, "isinf", isinf, Strides::kAny);
LS_KERNEL(CPU, "isclose", isclose, Strides::kAny);
LS_KERNEL(CPU, "bitwise_and.Tensor", bitwise<BitwiseAnd>, Strides::kAny);
LS_KERNEL(CPU, "bitwise_or.Tensor", bitwise<BitwiseOr>, Strides::kAny);
LS_KERNEL(CPU, "bitwise_xor.Tensor", bitwise<BitwiseXor>, Strides::kAny);
LS_KERNEL(CPU, "bitwise_and.Scalar", bitwise_number<BitwiseAnd>, Strides::kAny);
LS_KERNEL(CPU, "bitwise_or.Scalar", bitwise_number<BitwiseOr>, Strides::kAny);
LS_KERNEL(CPU, "bitwise_xor.Scalar", bitwise_number<BitwiseXor>, Strides::kAny);
LS_KERNEL(CPU, "bitwise_not", bitwise_not, Strides::kAny);
LS_KERNEL(CPU, "bitwise_left_shift.Tensor", shift_left, Strides::kAny);
LS_KERNEL(CPU, "bitwise_right_shift.Tensor", shift_right, Strides::kAny);
LS_KERNEL(CPU, "bitwise_left_shift.Tensor_Scalar", shift_left_number, Strides::kAny);
LS_KERNEL(CPU, "bitwise_right_shift.Tensor_Scalar", shift_right_number, Strides::kAny);

}  // namespace

}  // namespace lockstep::cpu
