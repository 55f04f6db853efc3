// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::clone(std::optional<MemoryFormat> memory_format) const {
  return form<Tensor(const Tensor&, std::optional<MemoryFormat>), "clone">()(*this, memory_format);
}
Tensor Tensor::contiguous(MemoryFormat memory_format) const {
  return form<Tensor(const Tensor&, MemoryFormat), "contiguous">()(*this, memory_format);
}
Tensor Tensor::copy(const Tensor& src, bool non_blocking) const {
  return form<Tensor(const Tensor&, const Tensor&, bool), "copy">()(*this, src, non_blocking);
}
const Tensor& Tensor::copy_(const Tensor& src, bool non_blocking) const {
  return form<const Tensor&(const Tensor&, const Tensor&, bool), "copy_">()(*this, src, non_blocking);
}
Tensor Tensor::fill(const Scalar& value) const {
  return form<Tensor(const Tensor&, Scalar), "fill.Scalar">()(*this, value);
}
Tensor Tensor::fill(const Tensor& value) const {
  return form<Tensor(const Tensor&, const Tensor&), "fill.Tensor">()(*this, value);
}
const Tensor& Tensor::fill_(const Scalar& value) const {
  return form<const Tensor&(const Tensor&, Scalar), "fill_.Scalar">()(*this, value);
}
const Tensor& Tensor::fill_(const Tensor& value) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "fill_.Tensor">()(*this, value);
}
Tensor Tensor::zero() const { return form<Tensor(const Tensor&), "zero">()(*this); }
const Tensor& Tensor::zero_() const { return form<const Tensor&(const Tensor&), "zero_">()(*this); }

}  // namespace lockstep
