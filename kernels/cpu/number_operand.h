#pragma once

#include "core/kernel_arguments.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

/// A number as a 0-d operand of a pointwise loop: what a tensor of `dtype` holds when it is filled
/// with the number. Keep it while the loop runs.
class NumberOperand {
 public:
  NumberOperand(const Scalar& number, DType dtype) {
    with_type(dtype, [&]<class T>() {
      if constexpr (std::is_integral_v<T>) {
        integer_ = static_cast<int64_t>(number.to<T>());
        set(&integer_, DType::kI64);
      } else if constexpr (std::is_same_v<T, float>) {
        single_ = number.to<float>();
        set(&single_, DType::kF32);
      } else {
        real_ = convert<double>(number.to<T>());
        set(&real_, DType::kF64);
      }
    });
  }
  NumberOperand(const NumberOperand&) = delete;
  NumberOperand& operator=(const NumberOperand&) = delete;

  const In& in() const { return in_; }

 private:
  void set(void* address, DType dtype) {
    in_.address = address;
    in_.numel = 1;
    in_.rank = 0;
    in_.dtype = dtype;
    in_.contiguous = true;
  }

  int64_t integer_ = 0;
  float single_ = 0;
  double real_ = 0;
  In in_;
};

}  // namespace lockstep::cpu
