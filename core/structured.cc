#include "core/structured.h"

#include "core/check.h"
#include "core/copies.h"
#include "core/dispatcher.h"

namespace lockstep::structured {

namespace {

bool is_matrix_layout(const TensorImpl& impl) {
  const size_t rank = impl.sizes.size();
  if (rank < 2 || impl.contiguous) return impl.contiguous;
  const int64_t rows = impl.sizes[rank - 2];
  const int64_t columns = impl.sizes[rank - 1];
  const int64_t row = impl.strides[rank - 2];
  const int64_t column = impl.strides[rank - 1];
  const bool row_major = (column == 1 || columns == 1) && (row >= columns || rows == 1);
  const bool column_major = (row == 1 || rows == 1) && (column >= rows || columns == 1);
  return row_major || column_major;
}

/// Copies elements with casts and any strides; both on `backend`.
void copy_elements(Key backend, const Tensor& destination, const Tensor& source) {
  static const Operator& op = dispatcher().find("copy");
  using Kernel = StructuredKernel<Tensor(const Tensor&, const Tensor&, bool)>::type;
  const AnyFunction kernel = op.kernel(backend);
  if (kernel == nullptr) op.throw_missing(backend);
  const Out out(*destination.impl());
  reinterpret_cast<Kernel*>(kernel)(out, out.as_in(), In(*source.impl()), false);
}

/// Bytes that a tensor touches: [first, past the last).
std::pair<const std::byte*, const std::byte*> extent(const TensorImpl& impl) {
  const std::byte* first = static_cast<const std::byte*>(impl.data());
  int64_t reach = 1;
  for (size_t i = 0; i < impl.sizes.size(); ++i) reach += (impl.sizes[i] - 1) * impl.strides[i];
  return {first, first + reach * static_cast<int64_t>(size_of(impl.dtype))};
}

}  // namespace

bool acceptable(const TensorImpl& impl, std::optional<DType> compute, Strides strides) {
  if (compute && impl.dtype != *compute) return false;
  if (strides == Strides::kAny || impl.contiguous) return true;
  return strides == Strides::kMatrix && is_matrix_layout(impl);
}

Tensor converted(const Preparation& preparation, const Tensor& tensor, bool cast) {
  const DType dtype = cast ? preparation.compute.value_or(tensor.dtype()) : tensor.dtype();
  Tensor copy = empty_tensor(tensor.sizes(), dtype, tensor.device());
  // A cast of a number or a small vector is not worth a warning.
  if (tensor.numel() > 1) {
    count_hidden_copy(preparation.op.name(), tensor,
                      dtype != tensor.dtype() ? "the kernel computes in another dtype"
                                              : "the kernel cannot read these strides");
  }
  if (preparation.backend != Key::kMeta) copy_elements(preparation.backend, copy, tensor);
  return copy;
}

Tensor allocate(const OutputSpec& spec, Device device) {
  if (!spec.present) return {};
  return spec.strides ? empty_strided_tensor(spec.sizes, *spec.strides, spec.dtype, device)
                      : empty_tensor(spec.sizes, spec.dtype, device);
}

Target::Target(const Preparation& preparation, const OutputSpec& spec, Device device)
    : result_(allocate(spec, device)) {
  if (spec.present) choose_place(preparation, spec.dtype);
}

Target::Target(const Preparation& preparation, const OutputSpec& spec, const Tensor& destination,
               bool resizable)
    : result_(destination) {
  const std::string_view op = preparation.op.name();
  if (!same(destination.sizes(), spec.sizes)) {
    LS_CHECK(resizable, ShapeError,
             "[{}] the result does not fit in place: expected shape {}, got {}. Use the form that "
             "returns a new tensor.",
             op, destination.shape(), to_string(spec.sizes));
    LS_CHECK(!destination.is_view() || destination.numel() == 0, ShapeError,
             "[{}] out= is a view and cannot be resized: expected shape {}, got {}. Give a tensor "
             "of the right shape.",
             op, to_string(spec.sizes), destination.shape());
    TensorImpl& impl = *destination.impl();
    const size_t bytes = static_cast<size_t>(count_elements(spec.sizes)) * size_of(impl.dtype);
    if (bytes > impl.storage->bytes()) impl.storage->resize(bytes);
    impl.sizes = spec.sizes;
    impl.strides = contiguous_strides(spec.sizes);
    impl.offset = 0;
    impl.refresh();
  }
  const DType to = destination.dtype();
  const bool castable = spec.dtype == to || is_floating(to) ||
                        (!is_floating(spec.dtype) && (to != DType::kBool || spec.dtype == DType::kBool));
  LS_CHECK(castable, DTypeError,
           "[{}] the result cannot be stored: expected a destination of {}, got {}. Cast it first.",
           op, to_string(spec.dtype), to_string(to));
  LS_CHECK(!may_self_overlap(destination.sizes(), destination.strides()), ShapeError,
           "[{}] the destination's elements overlap (an expanded tensor?): expected each to have "
           "its own memory, got shape {} with strides {}. clone() it first.",
           op, destination.shape(), to_string(destination.strides()));
  choose_place(preparation, spec.dtype);
}

void Target::choose_place(const Preparation& preparation, DType dtype) {
  const TensorImpl& impl = *result_.impl();
  const bool fits =
      impl.dtype == dtype && (preparation.strides == Strides::kAny || impl.contiguous);
  if (fits) [[likely]] {
    out_ = Out(impl);
    return;
  }
  temporary_ = empty_tensor(impl.sizes, dtype, result_.device());
  count_hidden_copy(preparation.op.name(), result_,
                    impl.dtype != dtype ? "the result is cast into the destination"
                                        : "the kernel cannot write these strides");
  out_ = Out(*temporary_.impl());
}

void Target::finish(const Preparation& preparation) {
  if (temporary_.defined()) copy_elements(preparation.backend, result_, temporary_);
}

void check_overlap(const Operator& op, const Tensor& destination, const Tensor& input) {
  const TensorImpl& a = *destination.impl();
  const TensorImpl& b = *input.impl();
  if (&a == &b || !(a.storage == b.storage) || a.numel == 0 || b.numel == 0) return;
  const auto [a_first, a_last] = extent(a);
  const auto [b_first, b_last] = extent(b);
  const bool apart = a_last <= b_first || b_last <= a_first;
  const bool identical = a_first == b_first && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
  LS_CHECK(apart || identical, ShapeError,
           "[{}] the destination shares part of its memory with an input: expected none or all of "
           "it, got shapes {} and {}. clone() the input first.",
           op.name(), destination.shape(), input.shape());
}

void check_same_device(const Operator& op, Device device, const Tensor& tensor) {
  LS_CHECK(tensor.device() == device, DeviceError,
           "[{}] tensors are on different devices: expected {}, got {}. Move one with to(device).",
           op.name(), to_string(device), to_string(tensor.device()));
}

}  // namespace lockstep::structured
