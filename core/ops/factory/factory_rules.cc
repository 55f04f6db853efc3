#include "core/ops/factory/factory_rules.h"

#include <cmath>

#include "core/base/check.h"
#include "core/tensor/memory_format.h"

namespace lockstep::rules {

namespace {

/// bool, int64 or float32, by the kind of the number.
DType dtype_of_number(const Scalar& number) {
  return number.is_floating() ? DType::kF32 : number.kind();
}

void refuse_preserve(std::optional<MemoryFormat> format) {
  LS_CHECK(format != MemoryFormat::kPreserve, ShapeError,
           "[empty] there is no tensor whose strides could be preserved. Use empty_like.");
}

int64_t arange_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  const double first = start.to_double();
  const double last = end.to_double();
  const double stride = step.to_double();
  LS_CHECK(stride != 0 && std::isfinite(first) && std::isfinite(last) && std::isfinite(stride),
           Error, "[arange] start, end and a step other than 0 must be finite: got {}, {}, {}.",
           to_string(start), to_string(end), to_string(step));
  LS_CHECK((stride > 0 && last >= first) || (stride < 0 && last <= first), Error,
           "[arange] the step leads away from the end: got start {}, end {}, step {}.",
           to_string(start), to_string(end), to_string(step));
  if (start.is_floating() || end.is_floating() || step.is_floating()) {
    return static_cast<int64_t>(std::ceil((last - first) / stride));
  }
  const int64_t distance = end.to_int() - start.to_int();
  const int64_t part = distance / step.to_int();
  return part + (part * step.to_int() != distance ? 1 : 0);
}

Outputs like_self(std::string_view op, const Tensor& self, std::optional<DType> dtype,
                  std::optional<MemoryFormat> format) {
  Outputs outputs = one(to_dims(self.sizes()), dtype.value_or(self.dtype()));
  const MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  if (!self.is_contiguous() || wanted != MemoryFormat::kPreserve) {
    outputs.specs[0].strides = strides_in_format(op, wanted, self.sizes(), self.strides());
  }
  return outputs;
}

}  // namespace

Outputs empty(IntList size, std::optional<DType> dtype, std::optional<Layout>,
              std::optional<Device>, std::optional<bool>,
              std::optional<MemoryFormat> memory_format) {
  refuse_preserve(memory_format);
  Outputs outputs = one(size, dtype.value_or(DType::kF32));
  if (memory_format && *memory_format != MemoryFormat::kContiguous) {
    outputs.specs[0].strides = strides_in_format("empty", *memory_format, size, size);
  }
  return outputs;
}

Outputs filled(IntList size, std::optional<DType> dtype, std::optional<Layout>,
               std::optional<Device>, std::optional<bool>) {
  return one(size, dtype.value_or(DType::kF32));
}

Outputs full(IntList size, Scalar fill_value, std::optional<DType> dtype, std::optional<Layout>,
             std::optional<Device>, std::optional<bool>) {
  return one(size, dtype.value_or(dtype_of_number(fill_value)));
}

Outputs scalar_tensor(Scalar, std::optional<DType> dtype, std::optional<Layout>,
                      std::optional<Device>, std::optional<bool>) {
  return one({}, dtype.value_or(DType::kF32));
}

Outputs arange(Scalar start, Scalar end, Scalar step, std::optional<DType> dtype,
               std::optional<Layout>, std::optional<Device>, std::optional<bool>) {
  const bool integral = !start.is_floating() && !end.is_floating() && !step.is_floating();
  LS_CHECK(dtype != DType::kBool, DTypeError, "[arange] expected a numeric dtype, got bool.");
  return one({arange_length(start, end, step)},
             dtype.value_or(integral ? DType::kI64 : DType::kF32));
}

Outputs like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout>,
             std::optional<Device>, std::optional<bool>,
             std::optional<MemoryFormat> memory_format) {
  return like_self("empty_like", self, dtype, memory_format);
}

Outputs full_like(const Tensor& self, Scalar, std::optional<DType> dtype, std::optional<Layout>,
                  std::optional<Device>, std::optional<bool>,
                  std::optional<MemoryFormat> memory_format) {
  return like_self("full_like", self, dtype, memory_format);
}

}  // namespace lockstep::rules
