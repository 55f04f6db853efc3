#include "core/tensor/tensor.h"

#include "core/base/check.h"
#include "core/tensor/memory_format.h"
#include "core/tensor/storage_extent.h"
#include "core/tensor/tracked_tensors.h"

namespace lockstep {

namespace {

void track_if_wanted(TensorImpl& tensor) {
  if (detail::view_trackers.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    detail::track(tensor);
  }
}

/// The dimension from 0. Operators take 0 and -1 of a 0-d tensor, too; a size there is none of.
int64_t own_dim(std::string_view op, int64_t dim, int64_t rank) {
  const int64_t wrapped = wrap_dim(op, dim, rank);
  LS_CHECK(rank > 0, IndexError,
           "[{}] dimension {} of a 0-d tensor: expected a tensor with dimensions. Look at dim() "
           "before.",
           op, dim);
  return wrapped;
}

}  // namespace

TensorImpl::TensorImpl(Ref<Storage> s, Dims&& sz, Dims&& st, int64_t off, DType t)
    : storage(std::move(s)),
      sizes(std::move(sz)),
      strides(std::move(st)),
      offset(off),
      dtype(t),
      keys(backend_key(storage->device().type)) {
  refresh();
  track_if_wanted(*this);
}

TensorImpl::TensorImpl(Ref<Storage> s, IntList sz, int64_t count, DType t)
    : storage(std::move(s)),
      sizes(to_dims(sz)),
      strides(contiguous_strides(sz)),
      numel(count),
      dtype(t),
      inference(detail::inference_mode),
      keys(backend_key(storage->device().type)) {
  track_if_wanted(*this);
}

void TensorImpl::refresh() {
  int64_t count = 1;
  bool rows = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    rows = rows && (sizes[i] == 1 || strides[i] == count);
    count *= sizes[i];
  }
  numel = count;
  contiguous = rows || count == 0;
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

int64_t Tensor::size(int64_t dim) const {
  return sizes()[static_cast<size_t>(own_dim("size", dim, this->dim()))];
}

int64_t Tensor::stride(int64_t dim) const {
  return strides()[static_cast<size_t>(own_dim("stride", dim, this->dim()))];
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  return is_in_format(format, sizes(), strides());
}

Tensor empty_tensor(IntList sizes, DType dtype, Device device) {
  const int64_t count = count_elements(sizes);
  return Tensor(make_ref<TensorImpl>(
      make_ref<Storage>(storage_bytes("empty", count, dtype), device), sizes, count, dtype));
}

Tensor empty_strided_tensor(IntList sizes, IntList strides, DType dtype, Device device) {
  const int64_t elements = storage_extent("empty_strided", sizes, strides);
  const size_t bytes = storage_bytes("empty_strided", elements, dtype);
  Ref<TensorImpl> impl =
      make_ref<TensorImpl>(make_ref<Storage>(bytes, device), sizes, strides, 0, dtype);
  impl->inference = detail::inference_mode;
  return Tensor(std::move(impl));
}

Tensor alias_tensor(const Tensor& of, IntList sizes, IntList strides, int64_t offset, DType dtype,
                    bool relate, ViewOrigin origin) {
  return alias_moved(of, to_dims(sizes), to_dims(strides), offset, dtype, relate, origin);
}

Tensor alias_moved(const Tensor& of, Dims&& sizes, Dims&& strides, int64_t offset, DType dtype,
                   bool relate, ViewOrigin origin) {
  const TensorImpl& source = *of.impl();
  Ref<TensorImpl> impl =
      make_ref<TensorImpl>(source.storage, std::move(sizes), std::move(strides), offset, dtype);
  impl->inference = source.inference;
  if (relate && !source.inference) {
    impl->base = source.base ? source.base : Ref<TensorImpl>::share(of.impl());
    // A view of a view keeps the stricter of the two rules.
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
