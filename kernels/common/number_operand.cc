#include "kernels/common/number_operand.h"

namespace lockstep {

template <class T>
void NumberOperand::set(T* place, T value) {
  *place = value;
  in_.address = place;
  in_.numel = 1;
  in_.rank = 0;
  in_.dtype = dtype_of<T>;
  in_.contiguous = true;
}

NumberOperand::NumberOperand(const Scalar& number, DType dtype) { set_to(number, dtype); }

void NumberOperand::set_to(const Scalar& number, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return set(&integer_, static_cast<int64_t>(number.to<bool>()));
    case DType::kU8:
      return set(&integer_, static_cast<int64_t>(number.to<uint8_t>()));
    case DType::kI8:
      return set(&integer_, static_cast<int64_t>(number.to<int8_t>()));
    case DType::kI16:
      return set(&integer_, static_cast<int64_t>(number.to<int16_t>()));
    case DType::kI32:
      return set(&integer_, static_cast<int64_t>(number.to<int32_t>()));
    case DType::kI64:
      return set(&integer_, number.to<int64_t>());
    case DType::kF16:
      return set(&single_, static_cast<float>(number.to<Half>()));
    case DType::kBF16:
      return set(&single_, static_cast<float>(number.to<BFloat16>()));
    case DType::kF32:
      return set(&single_, number.to<float>());
    case DType::kF64:
      return set(&real_, number.to<double>());
  }
}

}  // namespace lockstep
