#pragma once

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/scalar.h"

namespace lockstep {

/// A number as an operand of a pointwise loop: what a tensor of `dtype` holds when it is filled
/// with the number. It lies in the cpu's memory; keep it while the loop is started.
class NumberOperand {
 public:
  NumberOperand(const Scalar& number, DType dtype);
  NumberOperand(const NumberOperand&) = delete;
  NumberOperand& operator=(const NumberOperand&) = delete;

  /// As a tensor without dimensions, of float64, float32 or int64.
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

/// The tensor that an operand of a pointwise loop is.
inline const In& tensor_of(const In& in) { return in; }
inline const In& tensor_of(const NumberOperand& number) { return number.in(); }

}  // namespace lockstep
