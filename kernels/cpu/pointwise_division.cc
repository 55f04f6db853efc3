#include <atomic>

#include "core/check.h"
#include "core/library.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/number_operand.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/pointwise_functors.h"

namespace lockstep::cpu {

namespace {

using namespace functors;

// Integer division by zero has no value: the loop notes it and goes on, the kernel then throws.

struct Quotient {
  int64_t operator()(int64_t a, int64_t b) const { return b == -1 ? Negate()(a) : a / b; }
};
struct FlooredQuotient {
  int64_t operator()(int64_t a, int64_t b) const {
    if (b == -1) return Negate()(a);
    const int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
};
struct Rest {
  int64_t operator()(int64_t a, int64_t b) const { return b == -1 ? 0 : a % b; }
};
struct FlooredRest {
  int64_t operator()(int64_t a, int64_t b) const {
    const int64_t rest = Rest()(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
template <class F>
struct Guarded {
  static constexpr bool kHeavy = true;
  std::atomic<bool>* found_zero;
  int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0) [[unlikely]] {
      found_zero->store(true, std::memory_order_relaxed);
      return 0;
    }
    return F()(a, b);
  }
};

template <class Real, class Integer>
void divide(const char* op, const Out& out, const In& self, const In& other) {
  if (is_floating(out.dtype)) {
    return with_floating_lane(out.dtype,
                              [&]<class T>() { elementwise<T, T, T>(out, Real(), self, other); });
  }
  std::atomic<bool> found_zero = false;
  elementwise<int64_t, int64_t, int64_t>(out, Guarded<Integer>{&found_zero}, self, other);
  LS_CHECK(!found_zero, Error,
           "[{}] integer division by zero: expected divisors other than 0 for a result of {}, got "
           "shapes {} ({}) and {} ({}) with a 0 in the second. Cast to a floating dtype for inf or "
           "NaN.",
           op, to_string(out.dtype), to_string(self.sizes()), to_string(self.dtype),
           to_string(other.sizes()), to_string(other.dtype));
}

void fmod(const Out& out, const In& self, const In& other) {
  divide<FMod, Rest>("fmod", out, self, other);
}
void remainder(const Out& out, const In& self, const In& other) {
  divide<Remainder, FlooredRest>("remainder", out, self, other);
}
void div_mode(const Out& out, const In& self, const In& other,
              std::optional<std::string_view> mode) {
  if (!mode) {
    with_floating_lane(out.dtype,
                       [&]<class T>() { elementwise<T, T, T>(out, Divide(), self, other); });
  } else if (*mode == "trunc") {
    divide<DivideTruncate, Quotient>("div", out, self, other);
  } else {
    divide<DivideFloor, FlooredQuotient>("div", out, self, other);
  }
}

void fmod_number(const Out& out, const In& self, Scalar other) {
  fmod(out, self, NumberOperand(other, out.dtype).in());
}
void remainder_number(const Out& out, const In& self, Scalar other) {
  remainder(out, self, NumberOperand(other, out.dtype).in());
}
void remainder_of_number(const Out& out, Scalar self, const In& other) {
  remainder(out, NumberOperand(self, out.dtype).in(), other);
}
void div_mode_number(const Out& out, const In& self, Scalar other,
                     std::optional<std::string_view> mode) {
  div_mode(out, self, NumberOperand(other, out.dtype).in(), mode);
}

LS_KERNEL(CPU, "fmod.Tensor", fmod, Strides::kAny);
LS_KERNEL(CPU, "fmod.Scalar", fmod_number, Strides::kAny);
LS_KERNEL(CPU, "remainder.Tensor", remainder, Strides::kAny);
LS_KERNEL(CPU, "remainder.Scalar", remainder_number, Strides::kAny);
LS_KERNEL(CPU, "remainder.Scalar_Tensor", remainder_of_number, Strides::kAny);
LS_KERNEL(CPU, "div.Tensor_mode", div_mode, Strides::kAny);
LS_KERNEL(CPU, "div.Scalar_mode", div_mode_number, Strides::kAny);

}  // namespace

}  // namespace lockstep::cpu
