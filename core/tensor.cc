#include "core/tensor.h"

#include "core/check.h"

namespace lockstep {

namespace {

size_t bytes_for(int64_t elements, DType dtype) {
  int64_t bytes = 0;
  LS_CHECK(!__builtin_mul_overflow(elements, static_cast<int64_t>(size_of(dtype)), &bytes),
           OutOfMemoryError, "[empty] {} elements of {} are more bytes than an address can hold.",
           elements, to_string(dtype));
  return static_cast<size_t>(bytes);
}

}  // namespace

TensorImpl::TensorImpl(Ref<Storage> s, Dims sz, Dims st, int64_t off, DType t)
    : storage(std::move(s)),
      sizes(std::move(sz)),
      strides(std::move(st)),
      offset(off),
      dtype(t),
      keys(backend_key(storage->device().type)) {
  refresh();
}

void TensorImpl::refresh() {
  numel = 1;
  for (int64_t size : sizes) numel *= size;
  contiguous = lockstep::is_contiguous(sizes, strides);
}

void Tensor::throw_undefined() {
  throw DispatchError(
      "[tensor] an undefined tensor was used: expected one with elements, got a default-made "
      "Tensor. Assign it first.");
}

void Tensor::throw_wrong_dtype(DType wanted) const {
  throw DTypeError(fmt::format("[data] element type differs: expected {}, got {}. Use to(dtype).",
                               to_string(wanted), to_string(dtype())));
}

Tensor empty_tensor(IntList sizes, DType dtype, Device device) {
  const size_t bytes = bytes_for(count_elements(sizes), dtype);
  return Tensor(make_ref<TensorImpl>(make_ref<Storage>(bytes, device), to_dims(sizes),
                                     contiguous_strides(sizes), 0, dtype));
}

Tensor empty_strided_tensor(IntList sizes, IntList strides, DType dtype, Device device) {
  int64_t reach = count_elements(sizes) == 0 ? 0 : 1;
  for (size_t i = 0; reach != 0 && i < sizes.size(); ++i) reach += (sizes[i] - 1) * strides[i];
  const size_t bytes = bytes_for(reach, dtype);
  return Tensor(make_ref<TensorImpl>(make_ref<Storage>(bytes, device), to_dims(sizes),
                                     to_dims(strides), 0, dtype));
}

Tensor alias_tensor(const Tensor& of, Dims sizes, Dims strides, int64_t offset, DType dtype,
                    bool relate, ViewOrigin origin) {
  const TensorImpl& source = *of.impl();
  Ref<TensorImpl> impl =
      make_ref<TensorImpl>(source.storage, std::move(sizes), std::move(strides), offset, dtype);
  if (relate) {
    impl->base = source.base ? source.base : Ref<TensorImpl>::share(of.impl());
    // A view of a view keeps the stricter rule of the two.
    impl->view_origin = origin == ViewOrigin::kRecorded ? source.view_origin : origin;
  }
  return Tensor(std::move(impl));
}

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  return fmt::format("{}{} on {}", to_string(tensor.dtype()), tensor.shape(),
                     to_string(tensor.device()));
}

}  // namespace lockstep
