#include "core/ops/view/resize.h"

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/view/storage_bounds.h"
#include "core/tensor/inference_tensor.h"
#include "core/tensor/memory_format.h"
#include "core/tensor/storage_extent.h"

namespace lockstep {

void check_in_storage(std::string_view op, IntList sizes, IntList strides, int64_t offset,
                      int64_t held) {
  const int64_t extent = storage_extent(op, sizes, strides);
  LS_CHECK(offset >= 0 && (extent == 0 || (offset <= held && extent <= held - offset)), ShapeError,
           "[{}] sizes {} with strides {} from element {} leave the storage of {} elements. Use "
           "smaller sizes or strides.",
           op, to_string(sizes), to_string(strides), offset, held);
}

namespace {

/// What holds for every change of the memory that a tensor describes.
void check_can_move(std::string_view op, const Tensor& self) {
  const TensorImpl& impl = *self.impl();
  check_inference_write(op, self);
  LS_CHECK(!impl.batch, AutogradError,
           "[{}] a sample of a batch cannot get other memory under vmap: {}. Use an operator that "
           "returns a new tensor.",
           op, to_string(self));
  LS_CHECK(!impl.base || !impl.base->keys.has(Key::kAutograd), AutogradError,
           "[{}] a view of a tensor that requires grad cannot get other memory: {} of {}. Use "
           "detach() or clone().",
           op, to_string(self), to_string(self.base()));
}

/// For `set_`, which is for parameters, too, where nothing is recorded.
void check_can_set(const Tensor& self) {
  check_can_move("set_", self);
  const bool records = !detail::thread_keys.excluded.has(Key::kAutograd);
  LS_CHECK(!self.requires_grad() || (self.is_leaf() && !records), AutogradError,
           "[set_] the tensor requires grad, and the change has no derivative: {}. Use a "
           "NoGradGuard if it is a leaf, or detach() it.",
           to_string(self));
}

/// Moves self to `storage`. Its version grows by one, whatever the storage's is.
void move_to(const Tensor& self, const Ref<Storage>& storage, IntList sizes, IntList strides,
             int64_t offset) {
  TensorImpl& impl = *self.impl();
  const uint32_t next = impl.version() + 1;
  Dims new_sizes = to_dims(sizes);  // the lists may be self's own
  Dims new_strides = to_dims(strides);
  impl.storage = storage;
  impl.version_offset = next - storage->version();
  impl.sizes = std::move(new_sizes);
  impl.strides = std::move(new_strides);
  impl.offset = offset;
  impl.base.reset();
  impl.view_origin = ViewOrigin::kRecorded;
  impl.refresh();
}

}  // namespace

LS_OP(resize_, const Tensor&(const Tensor&, IntList, std::optional<MemoryFormat>),
      "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
    .doc("self in another shape, with the elements of its storage that fit.")
    .composite([](const Tensor& self, IntList sizes,
                  std::optional<MemoryFormat> format) -> const Tensor& {
      check_can_move("resize_", self);
      LS_CHECK(!self.requires_grad(), AutogradError,
               "[resize_] a tensor that requires grad cannot be resized: {}. Use detach(), or an "
               "operator that returns a new tensor.",
               to_string(self));
      LS_CHECK(format != MemoryFormat::kPreserve, ShapeError,
               "[resize_] strides of another shape cannot be preserved. Use another format.");
      TensorImpl& impl = *self.impl();
      const bool same_sizes = same(impl.sizes, sizes);
      if (!format && same_sizes) return self;
      const Dims strides =
          strides_in_format("resize_", format.value_or(MemoryFormat::kContiguous), sizes, sizes);
      const int64_t count = count_elements(sizes);
      const int64_t elements = (CheckedInt("resize_", count) + impl.offset).value();
      const size_t bytes = storage_bytes("resize_", elements, impl.dtype);
      if (same_sizes && impl.strides == strides) return self;
      if (count != 0 && bytes > impl.storage->bytes()) impl.storage->resize(bytes);
      impl.sizes = to_dims(sizes);
      impl.strides = strides;
      impl.refresh();
      impl.storage->bump_version();
      return self;
    });
const Tensor& resize_(const Tensor& self, IntList sizes,
                      std::optional<MemoryFormat> memory_format) {
  return op_resize_(self, sizes, memory_format);
}
const Tensor& Tensor::resize_(IntList sizes, std::optional<MemoryFormat> memory_format) const {
  return op_resize_(*this, sizes, memory_format);
}

LS_OP(set_, const Tensor&(const Tensor&), "set_(Tensor(a!) self) -> Tensor(a!)")
    .doc("self without elements, in a storage of its own.")
    .composite([](const Tensor& self) -> const Tensor& {
      check_can_set(self);
      const int64_t none = 0;
      const int64_t step = 1;
      move_to(self, make_ref<Storage>(size_t{0}, self.device()), {&none, 1}, {&step, 1}, 0);
      return self;
    });
const Tensor& set_(const Tensor& self) { return op_set_(self); }
const Tensor& Tensor::set_() const { return op_set_(*this); }

LS_OP(set_source_tensor, const Tensor&(const Tensor&, const Tensor&),
      "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)")
    .doc("self as another reference to source's elements.")
    .composite([](const Tensor& self, const Tensor& source) -> const Tensor& {
      if (self.is_same(source)) return self;
      check_can_set(self);
      const TensorImpl& from = *source.impl();
      LS_CHECK(!from.batch, AutogradError,
               "[set_] a sample of a batch has no memory of its own under vmap: {}. clone() it "
               "outside.",
               to_string(source));
      LS_CHECK(!from.inference || self.is_inference(), AutogradError,
               "[set_] the source was made in inference mode, and the tensor was not: {}. clone() "
               "it first.",
               to_string(source));
      LS_CHECK(!source.requires_grad() || detail::thread_keys.excluded.has(Key::kAutograd),
               AutogradError,
               "[set_] the source requires grad, and the change has no derivative: {}. Use "
               "detach() or a NoGradGuard.",
               to_string(source));
      LS_CHECK(from.dtype == self.dtype(), DTypeError,
               "[set_] the source has another dtype: expected {}, got {}. Use to(dtype).",
               to_string(self.dtype()), to_string(from.dtype));
      LS_CHECK(source.device() == self.device(), DeviceError,
               "[set_] the source is on another device: expected {}, got {}. Use to(device).",
               to_string(self.device()), to_string(source.device()));
      move_to(self, from.storage, from.sizes, from.strides, from.offset);
      return self;
    });
const Tensor& set_(const Tensor& self, const Tensor& source) {
  return op_set_source_tensor(self, source);
}
const Tensor& Tensor::set_(const Tensor& source) const {
  return op_set_source_tensor(*this, source);
}

const Tensor& set_(const Tensor& self, const Ref<Storage>& source, int64_t storage_offset,
                   IntList sizes, IntList strides) {
  check_can_set(self);
  LS_CHECK(source, DeviceError, "[set_] expected a storage, got none.");
  LS_CHECK(source->device() == self.device(), DeviceError,
           "[set_] the storage is on another device: expected {}, got {}. Use to(device).",
           to_string(self.device()), to_string(source->device()));
  check_in_storage("set_", sizes, strides, storage_offset,
                   static_cast<int64_t>(source->bytes() / size_of(self.dtype())));
  move_to(self, source, sizes, strides, storage_offset);
  return self;
}
const Tensor& Tensor::set_(const Ref<Storage>& source, int64_t storage_offset, IntList sizes,
                           IntList strides) const {
  return lockstep::set_(*this, source, storage_offset, sizes, strides);
}

}  // namespace lockstep
