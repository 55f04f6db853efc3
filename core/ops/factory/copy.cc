#include "core/ops/factory/copy.h"

#include "core/base/check.h"
#include "core/device/copies.h"
#include "core/device/device_runtime.h"
#include "core/device/transfer.h"
#include "core/dispatch/dispatch_trace.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/memory_format.h"
#include "core/tensor/number_range.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
namespace {

Outputs like_self(std::string_view op, const Tensor& self, DType dtype,
                  std::optional<MemoryFormat> format) {
  Outputs outputs = one(to_dims(self.sizes()), dtype);
  const MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  const bool row_major = wanted == MemoryFormat::kContiguous ||
                         (wanted == MemoryFormat::kPreserve && self.is_contiguous());
  if (!row_major) {
    outputs.specs[0].strides = strides_in_format(op, wanted, self.sizes(), self.strides());
  }
  return outputs;
}

Outputs copy(const Tensor& self, const Tensor& src, bool) {
  LS_CHECK(same(broadcast("copy_", self.sizes(), src.sizes()), self.sizes()), ShapeError,
           "[copy_] the source does not broadcast to the destination: expected {}, got {}.",
           self.shape(), src.shape());
  return like_self("copy", self, self.dtype(), std::nullopt);
}

Outputs clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  return like_self("clone", self, self.dtype(), memory_format);
}

Outputs to_copy(const Tensor& self, std::optional<DType> dtype, std::optional<Layout>,
                std::optional<Device> device, std::optional<bool>, bool,
                std::optional<MemoryFormat> memory_format) {
  LS_CHECK(self.device().type != DeviceType::kMeta || !device || *device == self.device(),
           DeviceError, "[to] a meta tensor has no elements to copy: got {}, asked for {}.",
           to_string(self), to_string(*device));
  return like_self("to", self, dtype.value_or(self.dtype()), memory_format);
}

Outputs fill(const Tensor& self, Scalar value) {
  check_holds("fill", "value", self.dtype(), value);
  return like_self("fill", self, self.dtype(), std::nullopt);
}
Outputs zero(const Tensor& self) { return like_self("zero", self, self.dtype(), std::nullopt); }

}  // namespace
}  // namespace rules

namespace {

void check_number(std::string_view op, const Tensor& value) {
  LS_CHECK(value.dim() == 0, ShapeError, "[{}] the value must be a 0-d tensor, got shape {}.", op,
           value.shape());
}

/// Whether a copy from one device to the other can be queued on a stream directly: a runtime is
/// involved, and neither autograd nor a mode, an observer or the dispatch trace must see the call.
bool is_stream_work(const Tensor& from, Device device, KeySet other_keys = {}) {
  const Device source = from.device();
  if (source == kMeta || device == kMeta || traces_dispatch()) return false;
  if (find_runtime(source) == nullptr && find_runtime(device) == nullptr) return false;
  const detail::ThreadKeys& thread = detail::thread_keys;
  const KeySet keys = (from.key_set() | other_keys | thread.included) - thread.excluded;
  // Autocast does not cast arguments of copies.
  return (keys - KeySet::backends() - Key::kAutocast).empty();
}

/// Whether the copy is a plain copy of bytes: same dtype, sizes and strides, without gaps.
bool is_byte_copy(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && same(a.sizes(), b.sizes()) && same(a.strides(), b.strides()) &&
         is_dense(a.sizes(), a.strides());
}

}  // namespace

LS_OP(copy, Tensor(const Tensor&, const Tensor&, bool),
      "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
    .doc("src broadcast to self's shape and cast to its dtype; copy_ writes it into self.")
    .structured(rules::copy)
    .batching(batching::into_first)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return zeros_like(grad); },
                           [&] { return ctx.unbroadcast(grad, 1); });
    });
Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking) {
  return op_copy(self, src, non_blocking);
}
const Tensor& copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (src.device() == self.device()) return op_copy.in_place(self, src, non_blocking);
  const bool may_change = !self.is_inference() || detail::inference_mode;
  if (may_change && is_byte_copy(self, src) && is_stream_work(src, self.device(), self.key_set())) {
    transfer_bytes(self.data(), self.device(), src.data(), src.device(), self.nbytes(),
                   non_blocking);
    self.storage()->bump_version();
    return self;
  }
  // A copy on the cpu must not be queued: the next line reads it at once.
  const bool queued = non_blocking && self.device() != kCPU;
  return op_copy.in_place(self, to(src, self.device(), queued), non_blocking);
}
const Tensor& Tensor::copy_(const Tensor& source) const {
  return lockstep::copy_(*this, source, false);
}

LS_OP(clone, Tensor(const Tensor&, std::optional<MemoryFormat>),
      "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
    .doc("A copy of self in new memory.")
    .structured(rules::clone)
    .batching(batching::elementwise)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad; });
    });
Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  return op_clone(self, memory_format);
}
const Tensor& clone_out(const Tensor& out, const Tensor& self) {
  return op_clone.out(self, std::nullopt, out);
}
const Tensor& clone_indices_out(std::string_view op, const Tensor& out, const Tensor& indices) {
  LS_CHECK(out.dtype() == indices.dtype(), DTypeError,
           "[{}] the result cannot be stored: expected a destination of {}, got {}. Cast it first.",
           op, to_string(indices.dtype()), to_string(out.dtype()));
  return clone_out(out, indices);
}

LS_OP(contiguous, Tensor(const Tensor&, MemoryFormat),
      "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
    .doc("self when it already has the memory format, else a copy.")
    .composite([](const Tensor& self, MemoryFormat format) {
      if (format == MemoryFormat::kPreserve || self.is_contiguous(format)) return self;
      count_hidden_copy("contiguous", self, "the elements lie in another order");
      return clone(self, format);
    });
Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  return op_contiguous(self, memory_format);
}
Tensor Tensor::contiguous() const {
  return is_contiguous() ? *this : op_contiguous(*this, MemoryFormat::kContiguous);
}

LS_OP(to_copy,
      Tensor(const Tensor&, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
             std::optional<bool>, bool, std::optional<MemoryFormat>),
      "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
      "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor")
    .doc("A copy of self with another dtype, device or memory format.")
    .structured(rules::to_copy)
    .batching(batching::elementwise)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor destination = ctx.destination(0);
        if (destination.defined()) return copy_(destination, grad);
        return to(grad, ctx.input(0).dtype, ctx.input(0).device);
      });
    });
LS_OP(to_copy_out, const Tensor&(const Tensor&, bool, std::optional<MemoryFormat>, const Tensor&),
      "_to_copy.out(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("self cast to the dtype of out.")
    .composite([](const Tensor& self, bool, std::optional<MemoryFormat>,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, to(self, out.dtype()));
    });
Tensor to(const Tensor& self, DType dtype, Device device, bool non_blocking, bool copy) {
  if (self.dtype() == dtype && self.device() == device) return copy ? clone(self) : self;
  if (self.device() != device && is_stream_work(self, device)) {
    // Cast on the device, before or after the copy, so that the cast needs no wait.
    const Tensor source = device == kCPU ? to(self, dtype) : self;
    const bool dense = is_dense(source.sizes(), source.strides());
    return to(transferred(dense ? source : clone(source), device, non_blocking), dtype);
  }
  // Without a device option the call is dispatched to self's device.
  std::optional<Device> elsewhere;
  if (self.device() != device) elsewhere.emplace(device);
  return op_to_copy(self, dtype, std::nullopt, elsewhere, std::nullopt, non_blocking, std::nullopt);
}
Tensor to(const Tensor& self, DType dtype) { return to(self, dtype, self.device()); }
Tensor to(const Tensor& self, Device device, bool non_blocking) {
  return to(self, self.dtype(), device, non_blocking);
}
Tensor Tensor::to(DType dtype, bool non_blocking, bool copy) const {
  return lockstep::to(*this, dtype, device(), non_blocking, copy);
}
Tensor Tensor::to(Device device, bool non_blocking, bool copy) const {
  return lockstep::to(*this, dtype(), device, non_blocking, copy);
}
Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy) const {
  LS_CHECK(!options.requires_grad, AutogradError,
           "[to] the options ask for requires_grad: expected a dtype, a device or both. Call "
           "set_requires_grad on the result.");
  return lockstep::to(*this, options.dtype.value_or(dtype()), options.device.value_or(device()),
                      non_blocking, copy);
}

LS_OP(fill, Tensor(const Tensor&, Scalar), "fill.Scalar(Tensor self, Scalar value) -> Tensor")
    .doc("A tensor with self's shape, strides and dtype and every element value.")
    .structured(rules::fill)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return zeros_like(grad); });
    });
Tensor fill(const Tensor& self, const Scalar& value) { return op_fill(self, value); }
const Tensor& fill_(const Tensor& self, const Scalar& value) {
  return op_fill.in_place(self, value);
}
LS_OP(fill_tensor, Tensor(const Tensor&, const Tensor&),
      "fill.Tensor(Tensor self, Tensor value) -> Tensor")
    .doc("A tensor with self's shape, strides and dtype and every element the 0-d value.")
    .composite([](const Tensor& self, const Tensor& value) {
      check_number("fill", value);
      return copy(self, value);
    });
LS_OP(fill_tensor_, const Tensor&(const Tensor&, const Tensor&),
      "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)")
    .doc("Writes the 0-d value into every element of self.")
    .composite([](const Tensor& self, const Tensor& value) -> const Tensor& {
      check_number("fill_", value);
      return copy_(self, value);
    });
LS_OP(fill_tensor_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "fill.Tensor_out(Tensor self, Tensor value, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("fill.Tensor, written into out.")
    .composite([](const Tensor& self, const Tensor& value, const Tensor& out) -> const Tensor& {
      check_number("fill", value);
      return op_copy.out(self, value, false, out);
    });

LS_OP(zero, Tensor(const Tensor&), "zero(Tensor self) -> Tensor")
    .doc("A tensor with self's shape, strides and dtype and every element 0.")
    .structured(rules::zero)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return zeros_like(grad); });
    });
const Tensor& zero_(const Tensor& self) { return op_zero.in_place(self); }

}  // namespace lockstep
