#include "core/ops/factory/factory.h"

#include <cmath>
#include <cstring>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/tensor/memory_format.h"
#include "core/tensor/number_range.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
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
    const double length = std::ceil((last - first) / stride);
    LS_CHECK(length < 0x1p63, ShapeError,
             "[arange] too many numbers for a 64-bit count: got start {}, end {}, step {}.",
             to_string(start), to_string(end), to_string(step));
    return static_cast<int64_t>(length);
  }
  const CheckedInt distance = CheckedInt("arange", end.to_int()) - start.to_int();
  if (step.to_int() == -1) return (CheckedInt("arange", 0) - distance).value();
  const int64_t part = distance.value() / step.to_int();
  return part + (part * step.to_int() != distance.value() ? 1 : 0);
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
  const DType result = dtype.value_or(dtype_of_number(fill_value));
  check_holds("full", "value", result, fill_value);
  return one(size, result);
}

Outputs scalar_tensor(Scalar number, std::optional<DType> dtype, std::optional<Layout>,
                      std::optional<Device>, std::optional<bool>) {
  check_holds("scalar_tensor", "number", dtype.value_or(DType::kF32), number);
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

Outputs full_like(const Tensor& self, Scalar fill_value, std::optional<DType> dtype,
                  std::optional<Layout>, std::optional<Device>, std::optional<bool>,
                  std::optional<MemoryFormat> memory_format) {
  check_holds("full_like", "value", dtype.value_or(self.dtype()), fill_value);
  return like_self("full_like", self, dtype, memory_format);
}

}  // namespace
}  // namespace rules

namespace {

constexpr std::string_view kNoInput = "a factory has no differentiable input";

/// Marks a new tensor as requiring grad if the options say so.
Tensor finished(Tensor result, const TensorOptions& options) {
  if (options.requires_grad) result.set_requires_grad();
  return result;
}

}  // namespace

LS_OP(empty,
      Tensor(IntList, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>, std::optional<MemoryFormat>),
      "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .doc("A tensor of uninitialised elements.")
    .structured(rules::empty)
    .allocates_only()
    .not_differentiable(kNoInput);
Tensor empty(IntList sizes, TensorOptions options) {
  return finished(
      op_empty(sizes, options.dtype, std::nullopt, options.device, std::nullopt, std::nullopt),
      options);
}

LS_OP(zeros,
      Tensor(IntList, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>),
      "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
      "bool? pin_memory=None) -> Tensor")
    .doc("A tensor of zeros.")
    .structured(rules::filled)
    .not_differentiable(kNoInput);
Tensor zeros(IntList sizes, TensorOptions options) {
  return finished(op_zeros(sizes, options.dtype, std::nullopt, options.device, std::nullopt),
                  options);
}

LS_OP(ones,
      Tensor(IntList, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>),
      "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
      "bool? pin_memory=None) -> Tensor")
    .doc("A tensor of ones.")
    .structured(rules::filled)
    .not_differentiable(kNoInput);
Tensor ones(IntList sizes, TensorOptions options) {
  return finished(op_ones(sizes, options.dtype, std::nullopt, options.device, std::nullopt),
                  options);
}

LS_OP(full,
      Tensor(IntList, Scalar, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>),
      "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
      "Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("A tensor with every element fill_value.")
    .structured(rules::full)
    .not_differentiable(kNoInput);
Tensor full(IntList sizes, const Scalar& value, TensorOptions options) {
  return finished(op_full(sizes, value, options.dtype, std::nullopt, options.device, std::nullopt),
                  options);
}

LS_OP(scalar_tensor,
      Tensor(Scalar, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>),
      "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None) -> Tensor")
    .doc("A 0-d tensor of one number.")
    .structured(rules::scalar_tensor)
    .not_differentiable(kNoInput);
Tensor scalar_tensor(const Scalar& value, TensorOptions options) {
  return finished(
      op_scalar_tensor(value, options.dtype, std::nullopt, options.device, std::nullopt), options);
}

LS_OP(arange_start_step,
      Tensor(Scalar, Scalar, Scalar, std::optional<DType>, std::optional<Layout>,
             std::optional<Device>, std::optional<bool>),
      "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, "
      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("start, start + step, ... up to but not including end.")
    .structured(rules::arange)
    .not_differentiable(kNoInput);
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, TensorOptions options) {
  return finished(op_arange_start_step(start, end, step, options.dtype, std::nullopt,
                                       options.device, std::nullopt),
                  options);
}

LS_OP(arange_start,
      Tensor(Scalar, Scalar, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>),
      "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
      "Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("start, start + 1, ... up to but not including end.")
    .composite([](Scalar start, Scalar end, std::optional<DType> dtype,
                  std::optional<Layout> layout, std::optional<Device> device,
                  std::optional<bool> pin_memory) {
      return op_arange_start_step(start, end, 1, dtype, layout, device, pin_memory);
    });
Tensor arange(const Scalar& start, const Scalar& end, TensorOptions options) {
  return arange(start, end, 1, options);
}

LS_OP(arange,
      Tensor(Scalar, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>),
      "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
      "bool? pin_memory=None) -> Tensor")
    .doc("0, 1, ... up to but not including end.")
    .composite([](Scalar end, std::optional<DType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory) {
      return op_arange_start_step(0, end, 1, dtype, layout, device, pin_memory);
    });
Tensor arange(const Scalar& end, TensorOptions options) { return arange(0, end, 1, options); }

LS_OP(empty_like,
      Tensor(const Tensor&, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>, std::optional<MemoryFormat>),
      "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .doc("Uninitialised elements in self's shape.")
    .structured(rules::like)
    .batching(batching::elementwise)
    .allocates_only()
    .not_differentiable("the result does not depend on self's elements");
Tensor empty_like(const Tensor& self, TensorOptions options) {
  return finished(
      op_empty_like(self, options.dtype, std::nullopt, options.device, std::nullopt, std::nullopt),
      options);
}

LS_OP(zeros_like,
      Tensor(const Tensor&, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>, std::optional<MemoryFormat>),
      "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .doc("Zeros in self's shape.")
    .structured(rules::like)
    .batching(batching::elementwise)
    .not_differentiable("the result does not depend on self's elements");
Tensor zeros_like(const Tensor& self, TensorOptions options) {
  return finished(
      op_zeros_like(self, options.dtype, std::nullopt, options.device, std::nullopt, std::nullopt),
      options);
}

LS_OP(ones_like,
      Tensor(const Tensor&, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>, std::optional<MemoryFormat>),
      "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .doc("Ones in self's shape.")
    .structured(rules::like)
    .batching(batching::elementwise)
    .not_differentiable("the result does not depend on self's elements");
Tensor ones_like(const Tensor& self, TensorOptions options) {
  return finished(
      op_ones_like(self, options.dtype, std::nullopt, options.device, std::nullopt, std::nullopt),
      options);
}

LS_OP(full_like,
      Tensor(const Tensor&, Scalar, std::optional<DType>, std::optional<Layout>,
             std::optional<Device>, std::optional<bool>, std::optional<MemoryFormat>),
      "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
      "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .doc("A tensor of self's shape with every element fill_value.")
    .structured(rules::full_like)
    .batching(batching::elementwise)
    .not_differentiable("the result does not depend on self's elements");
Tensor full_like(const Tensor& self, const Scalar& value, TensorOptions options) {
  return finished(op_full_like(self, value, options.dtype, std::nullopt, options.device,
                               std::nullopt, std::nullopt),
                  options);
}

Tensor detail::tensor_from_bytes(const void* values, size_t count, DType dtype, IntList sizes) {
  const int64_t wanted = count_elements(sizes);
  LS_CHECK(wanted == static_cast<int64_t>(count), ShapeError,
           "[tensor_from] the values do not fill the shape: expected {} for {}, got {}.", wanted,
           to_string(sizes), count);
  Tensor result = empty_tensor(sizes, dtype);
  if (count != 0) std::memcpy(result.data(), values, result.nbytes());
  return result.to(default_device());
}

Tensor detail::with_options(const Tensor& tensor, const TensorOptions& options) {
  return finished(
      to(tensor, options.dtype.value_or(tensor.dtype()), options.device.value_or(tensor.device())),
      options);
}

}  // namespace lockstep
