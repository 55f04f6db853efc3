#include "core/ops/factory/copy_rules.h"

#include "core/base/check.h"
#include "core/tensor/memory_format.h"

namespace lockstep::rules {

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

}  // namespace

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

Outputs fill(const Tensor& self, Scalar) {
  return like_self("fill", self, self.dtype(), std::nullopt);
}
Outputs zero(const Tensor& self) { return like_self("zero", self, self.dtype(), std::nullopt); }

}  // namespace lockstep::rules
