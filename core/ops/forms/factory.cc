#include "core/ops/forms/factory.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& arange_out(const Tensor& out, const Scalar& end) {
  return form<const Tensor&(Scalar, const Tensor&), "arange.out">()(end, out);
}
const Tensor& arange_out(const Tensor& out, const Scalar& start, const Scalar& end,
                         const Scalar& step) {
  return form<const Tensor&(Scalar, Scalar, Scalar, const Tensor&), "arange.start_out">()(start, end, step, out);
}
const Tensor& clone_out(const Tensor& out, const Tensor& self,
                        std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, std::optional<MemoryFormat>, const Tensor&), "clone.out">()(self, memory_format, out);
}
const Tensor& copy_out(const Tensor& out, const Tensor& self, const Tensor& src,
                       bool non_blocking) {
  return form<const Tensor&(const Tensor&, const Tensor&, bool, const Tensor&), "copy.out">()(self, src, non_blocking, out);
}
const Tensor& empty_out(const Tensor& out, IntList size,
                        std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(IntList, std::optional<MemoryFormat>, const Tensor&), "empty.out">()(size, memory_format, out);
}
const Tensor& empty_like_out(const Tensor& out, const Tensor& self,
                             std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, std::optional<MemoryFormat>, const Tensor&), "empty_like.out">()(self, memory_format, out);
}
const Tensor& empty_permuted_out(const Tensor& out, IntList size, IntList physical_layout) {
  return form<const Tensor&(IntList, IntList, const Tensor&), "empty_permuted.out">()(size, physical_layout, out);
}
const Tensor& empty_strided_out(const Tensor& out, IntList size, IntList stride) {
  return form<const Tensor&(IntList, IntList, const Tensor&), "empty_strided.out">()(size, stride, out);
}
const Tensor& eye_out(const Tensor& out, int64_t n, int64_t m) {
  return form<const Tensor&(int64_t, int64_t, const Tensor&), "eye.m_out">()(n, m, out);
}
const Tensor& eye_out(const Tensor& out, int64_t n) {
  return form<const Tensor&(int64_t, const Tensor&), "eye.out">()(n, out);
}
const Tensor& fill_out(const Tensor& out, const Tensor& self, const Scalar& value) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "fill.Scalar_out">()(self, value, out);
}
Tensor fill(const Tensor& self, const Tensor& value) {
  return form<Tensor(const Tensor&, const Tensor&), "fill.Tensor">()(self, value);
}
const Tensor& fill_out(const Tensor& out, const Tensor& self, const Tensor& value) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "fill.Tensor_out">()(self, value, out);
}
const Tensor& fill_(const Tensor& self, const Tensor& value) {
  return form<const Tensor&(const Tensor&, const Tensor&), "fill_.Tensor">()(self, value);
}
const Tensor& full_out(const Tensor& out, IntList size, const Scalar& fill_value) {
  return form<const Tensor&(IntList, Scalar, const Tensor&), "full.out">()(size, fill_value, out);
}
const Tensor& full_like_out(const Tensor& out, const Tensor& self, const Scalar& fill_value,
                            std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, Scalar, std::optional<MemoryFormat>, const Tensor&), "full_like.out">()(self, fill_value, memory_format, out);
}
const Tensor& linspace_out(const Tensor& out, const Scalar& start, const Scalar& end,
                           int64_t steps) {
  return form<const Tensor&(Scalar, Scalar, int64_t, const Tensor&), "linspace.out">()(start, end, steps, out);
}
const Tensor& logspace_out(const Tensor& out, const Scalar& start, const Scalar& end, int64_t steps,
                           double base) {
  return form<const Tensor&(Scalar, Scalar, int64_t, double, const Tensor&), "logspace.out">()(start, end, steps, base, out);
}
const Tensor& new_empty_out(const Tensor& out, const Tensor& self, IntList size) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "new_empty.out">()(self, size, out);
}
const Tensor& new_empty_strided_out(const Tensor& out, const Tensor& self, IntList size,
                                    IntList stride) {
  return form<const Tensor&(const Tensor&, IntList, IntList, const Tensor&), "new_empty_strided.out">()(self, size, stride, out);
}
const Tensor& new_full_out(const Tensor& out, const Tensor& self, IntList size,
                           const Scalar& fill_value) {
  return form<const Tensor&(const Tensor&, IntList, Scalar, const Tensor&), "new_full.out">()(self, size, fill_value, out);
}
const Tensor& new_ones_out(const Tensor& out, const Tensor& self, IntList size) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "new_ones.out">()(self, size, out);
}
const Tensor& new_zeros_out(const Tensor& out, const Tensor& self, IntList size) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "new_zeros.out">()(self, size, out);
}
const Tensor& ones_out(const Tensor& out, IntList size) {
  return form<const Tensor&(IntList, const Tensor&), "ones.out">()(size, out);
}
const Tensor& ones_like_out(const Tensor& out, const Tensor& self,
                            std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, std::optional<MemoryFormat>, const Tensor&), "ones_like.out">()(self, memory_format, out);
}
const Tensor& scalar_tensor_out(const Tensor& out, const Scalar& s) {
  return form<const Tensor&(Scalar, const Tensor&), "scalar_tensor.out">()(s, out);
}
Tensor zero(const Tensor& self) { return form<Tensor(const Tensor&), "zero">()(self); }
const Tensor& zero_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "zero.out">()(self, out);
}
const Tensor& zeros_out(const Tensor& out, IntList size) {
  return form<const Tensor&(IntList, const Tensor&), "zeros.out">()(size, out);
}
const Tensor& zeros_like_out(const Tensor& out, const Tensor& self,
                             std::optional<MemoryFormat> memory_format) {
  return form<const Tensor&(const Tensor&, std::optional<MemoryFormat>, const Tensor&), "zeros_like.out">()(self, memory_format, out);
}

}  // namespace lockstep
