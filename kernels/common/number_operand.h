#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/scalar.h"

namespace lockstep {

/// A number used as an operand of a pointwise loop, with the value that a tensor of `dtype` would
/// hold after being filled with it. It lives in CPU memory and must outlive the loop's launch.
class NumberOperand {
 public:
  NumberOperand(const Scalar& number, DType dtype);
  NumberOperand(const NumberOperand&) = delete;
  NumberOperand& operator=(const NumberOperand&) = delete;

  /// The number as a zero-dimensional tensor of float64, float32 or int64.
  const In& in() const { return in_; }

 private:
  void set_to(const Scalar& number, DType dtype);
  template <class T>
  void set(T* place, T value);

  int64_t integer_ = 0;
  float single_ = 0;
  double real_ = 0;
  In in_;
};

/// Returns the tensor of an operand of a pointwise loop.
inline const In& tensor_of(const In& in) { return in; }
inline const In& tensor_of(const NumberOperand& number) { return number.in(); }

}  // namespace lockstep
