#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/lifetime_bound.h"
#include "core/base/object_pool.h"
#include "core/base/ref.h"
#include "core/tensor/dispatch_key.h"
#include "core/tensor/options.h"
#include "core/tensor/scalar.h"
#include "core/tensor/shape.h"
#include "core/tensor/storage.h"

namespace lockstep {

class Tensor;
class TensorIndex;
class TensorList;
class OptionalTensorList;
class Generator;
class Node;
class HookHandle;
struct TensorImpl;

/// How a view was created; decides whether it may be changed in place while autograd records.
enum class ViewOrigin : uint8_t { kRecorded, kNoGrad, kMultiOutput };

namespace detail {
/// Set by InferenceModeGuard (autograd/grad_mode.h).
inline thread_local constinit bool inference_mode = false;
}  // namespace detail

/// Base of autograd's data about a tensor; the derived class is in autograd/.
struct AutogradMeta {
  virtual ~AutogradMeta() = default;
};
/// Base of vmap's data about a tensor that the mapped function sees as one sample of a batch; the
/// derived class is in autograd/.
struct BatchMeta {
  virtual ~BatchMeta() = default;
};

namespace detail {
/// Removes a tensor from the registry of core/tensor/tracked_tensors.h.
void untrack(const TensorImpl& tensor) noexcept;
}  // namespace detail

/// The object that a Tensor points to: geometry, storage, dispatch keys and autograd metadata.
struct TensorImpl : RefCounted, Pooled<TensorImpl> {
  TensorImpl(Ref<Storage> s, IntList sz, IntList st, int64_t off, DType t)
      : TensorImpl(std::move(s), to_dims(sz), to_dims(st), off, t) {}
  TensorImpl(Ref<Storage> s, Dims&& sz, Dims&& st, int64_t off, DType t);
  /// Row-major from the storage's start; `count` is the product of the sizes.
  TensorImpl(Ref<Storage> s, IntList sz, int64_t count, DType t);
  ~TensorImpl() {
    if (tracked) [[unlikely]]
      detail::untrack(*this);
  }

  Ref<Storage> storage;
  Dims sizes;
  Dims strides;        ///< in elements
  int64_t offset = 0;  ///< in elements of `dtype`
  int64_t numel = 0;
  DType dtype;
  bool contiguous = true;
  bool inference = false;  ///< made in inference mode, or a view of such a tensor
  ViewOrigin view_origin = ViewOrigin::kRecorded;
  /// Added to the storage's version (modulo 2^32), so that the tensor's version grows by one when
  /// `set_` gives it a storage whose version is lower.
  uint32_t version_offset = 0;
  bool tracked = false;  ///< registered by a TrackViews guard
  KeySet keys;
  Ref<TensorImpl> base;  ///< the tensor this is a view of, never itself a view; empty otherwise
  std::unique_ptr<AutogradMeta> autograd;
  std::unique_ptr<BatchMeta> batch;  ///< set together with Key::kVmap

  /// Address of the first element; null if there is no memory (meta, no elements). Throws
  /// DeviceError while the memory is elsewhere (Storage::take_window_away).
  void* data() const {
    std::byte* start = static_cast<std::byte*>(storage->data());
    if (start == nullptr) [[unlikely]]
      return storage->no_address();
    return start + offset * static_cast<int64_t>(size_of(dtype));
  }
  uint32_t version() const noexcept { return storage->version() + version_offset; }
  /// Recomputes `numel` and `contiguous` after sizes or strides changed.
  void refresh();
};

/// The type of a `Tensor?` argument: a borrowed tensor or nothing. The tensor must outlive the
/// call.
class OptionalTensor {
 public:
  OptionalTensor() noexcept = default;
  OptionalTensor(std::nullopt_t) noexcept {}
  inline OptionalTensor(const Tensor& tensor LS_LIFETIME_BOUND) noexcept;

  bool has_value() const noexcept { return tensor_ != nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  const Tensor& operator*() const noexcept { return *tensor_; }
  const Tensor* operator->() const noexcept { return tensor_; }
  /// The tensor, or an undefined one.
  inline Tensor value_or_undefined() const;

 private:
  const Tensor* tensor_ = nullptr;
};

/// An n-dimensional array: a reference to a TensorImpl. Copies share elements and metadata, so a
/// const Tensor's elements can be written. A default-constructed Tensor is undefined: only
/// `defined()` and assignment may be used on it, everything else throws.
///
/// Reference counts are thread-safe; everything else is as thread-safe as a plain object.
class [[nodiscard]] Tensor {
 public:
  Tensor() noexcept = default;
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  Tensor(const Tensor&) noexcept = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;

  /// Makes a named tensor refer to another one.
  Tensor& operator=(const Tensor&) & noexcept = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// Writes elements, broadcast, into what an expression gives, as in `x[0] = y` and `x[0] = 1`.
  void operator=(const Tensor& values) const&& { copy_(values); }
  void operator=(const Scalar& value) const&& { fill_(value); }

  bool defined() const noexcept { return static_cast<bool>(impl_); }
  TensorImpl* impl() const noexcept { return impl_.get(); }
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }

  // Geometry.
  int64_t dim() const { return static_cast<int64_t>(checked().sizes.size()); }
  IntList sizes() const { return checked().sizes; }
  IntList strides() const { return checked().strides; }
  /// Size of one dimension; -1 means the last. Throws IndexError if there is no such dimension: a
  /// 0-d tensor has none.
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t numel() const { return checked().numel; }
  int64_t storage_offset() const { return checked().offset; }
  bool is_contiguous() const { return checked().contiguous; }
  /// Whether the elements lie in `format` without gaps; see is_in_format
  /// (core/tensor/memory_format.h).
  bool is_contiguous(MemoryFormat format) const;
  std::string shape() const { return to_string(sizes()); }

  // Contents and location.
  DType dtype() const { return checked().dtype; }
  Device device() const { return checked().storage->device(); }
  TensorOptions options() const { return {dtype(), device()}; }
  KeySet key_set() const { return checked().keys; }
  const Ref<Storage>& storage() const { return checked().storage; }
  size_t nbytes() const { return static_cast<size_t>(numel()) * size_of(dtype()); }
  void* data() const { return checked().data(); }
  /// Address of the first element. Throws DTypeError if T is not the element type.
  template <class T>
  T* data() const {
    require_dtype(dtype_of<T>);
    return static_cast<T*>(checked().data());
  }
  /// Number of in-place changes to the storage, through any view, and of the tensor's moves to
  /// another storage (`set_`).
  uint32_t version() const { return checked().version(); }
  /// Whether it was made in inference mode. Outside that mode it can be neither changed in place
  /// nor saved for backward, and its views are not tracked as views.
  bool is_inference() const { return checked().inference; }
  bool is_view() const { return static_cast<bool>(checked().base); }
  /// The tensor this is a view of; undefined when it is not a view.
  Tensor base() const { return Tensor(checked().base); }

  /// Marks the memory as used by `stream`, which is not the stream it was allocated for: it is not
  /// reused before the work that is queued on `stream` when the last tensor is destroyed has
  /// finished.
  void record_stream(const Stream& stream) const { storage()->record_stream(stream); }
  /// Like record_stream, but only for the work queued on `stream` now: the memory can be reused
  /// sooner.
  void record_use(const Stream& stream) const { storage()->record_use(stream); }

  // Autograd; defined in autograd/tensor_methods.cc.
  bool requires_grad() const { return checked().keys.has(Key::kAutograd); }
  /// Makes this leaf require grad, or not. Throws AutogradError if set to false on a non-leaf, and
  /// on integer tensors.
  const Tensor& set_requires_grad(bool requires_grad = true) const;
  bool is_leaf() const;
  /// The accumulated gradient of a leaf; undefined before the first backward.
  const Tensor& grad() const;
  void set_grad(const Tensor& grad) const;
  /// The node that computed this tensor, or null for a leaf.
  Node* grad_fn() const;
  /// Also stores the gradient of a non-leaf in its `grad`; no effect on a leaf. Throws
  /// AutogradError unless it requires grad.
  void retain_grad() const;
  bool retains_grad() const;
  /// Calls `hook` with this tensor's gradient whenever one is complete; a defined return value
  /// replaces the gradient. See autograd/hooks.h.
  HookHandle register_hook(std::function<Tensor(const Tensor& grad)> hook) const;
  /// Accumulates d(this)/d(leaf), weighted by `gradient`, into the grad of every leaf of the graph.
  /// `gradient` may be omitted for a tensor of one element.
  void backward(const Tensor& gradient = {}, bool retain_graph = false,
                bool create_graph = false) const;

  // Operators as methods: what each does is said in the headers under core/ops/. Written from the
  // operators' declarations are those of every operator whose first argument is `Tensor self`.
#include "core/tensor/methods/conv.inc"
#include "core/tensor/methods/factory.inc"
#include "core/tensor/methods/image.inc"
#include "core/tensor/methods/index.inc"
#include "core/tensor/methods/linalg.inc"
#include "core/tensor/methods/loss.inc"
#include "core/tensor/methods/matmul.inc"
#include "core/tensor/methods/pointwise.inc"
#include "core/tensor/methods/random.inc"
#include "core/tensor/methods/reduce.inc"
#include "core/tensor/methods/sort.inc"
#include "core/tensor/methods/view.inc"
  Tensor contiguous() const;
  const Tensor& copy_(const Tensor& source) const;
  /// The elements as `dtype`, on `device`: self if it is both already, unless `copy`. A
  /// `non_blocking` copy between pinned memory and a device is only queued on the current stream.
  Tensor to(DType dtype, bool non_blocking = false, bool copy = false) const;
  Tensor to(Device device, bool non_blocking = false, bool copy = false) const;
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false) const;

  // Subscripts, as in Python; see core/ops/index/subscript.h.
  Tensor operator[](int64_t index) const;
  Tensor operator[](const Tensor& index) const;
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor index(std::span<const TensorIndex> indices) const;
  const Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) const;
  const Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) const;
  const Tensor& index_put_(std::span<const TensorIndex> indices, const Tensor& values) const;

  const Tensor& resize_(IntList sizes,
                        std::optional<MemoryFormat> memory_format = std::nullopt) const;
  const Tensor& set_() const;
  const Tensor& set_(const Tensor& source) const;
  const Tensor& set_(const Ref<Storage>& source, int64_t storage_offset, IntList sizes,
                     IntList strides) const;
  /// Returns the only element as T. Throws ShapeError unless there is exactly one, and DTypeError
  /// if T cannot hold it: a fraction, an infinity or a NaN in an integer type, a number outside the
  /// range of T.
  template <class T>
  T item() const {
    return item_scalar().checked_to<T>();
  }
  Scalar item_scalar() const;

 private:
  TensorImpl& checked() const {
    if (!impl_) [[unlikely]] {
      throw_undefined();
    }
    return *impl_;
  }
  [[noreturn]] static void throw_undefined();
  void require_dtype(DType wanted) const {
    if (checked().dtype != wanted) [[unlikely]] {
      throw_wrong_dtype(wanted);
    }
  }
  [[noreturn]] void throw_wrong_dtype(DType wanted) const;

  Ref<TensorImpl> impl_;
};

OptionalTensor::OptionalTensor(const Tensor& tensor) noexcept
    : tensor_(tensor.defined() ? &tensor : nullptr) {}
Tensor OptionalTensor::value_or_undefined() const {
  return tensor_ != nullptr ? *tensor_ : Tensor();
}

/// A borrowed list of tensors, the type of every `Tensor[]` argument. What is named and kept is a
/// std::vector<Tensor>.
class TensorList : public std::span<const Tensor> {
 public:
  using std::span<const Tensor>::span;
  TensorList(std::span<const Tensor> s) : span(s) {}
  TensorList(const std::vector<Tensor>& v LS_LIFETIME_BOUND) : span(v.data(), v.size()) {}
  TensorList(std::initializer_list<Tensor> l LS_LIFETIME_BOUND) : span(l.begin(), l.size()) {}
};
/// The type of a `Tensor(a!)[]` argument: the operator writes into these tensors.
class MutableTensorList : public TensorList {
 public:
  using TensorList::TensorList;
};

/// The type of a `Tensor?[]` argument: an undefined tensor means absent.
class OptionalTensorList : public TensorList {
 public:
  using TensorList::TensorList;
};

/// Makes an uninitialised contiguous tensor without the dispatcher: for kernels and shape rules.
Tensor empty_tensor(IntList sizes, DType dtype, Device device = kCPU);
/// Like empty_tensor, with explicit strides, which must be dense (only the size is checked).
Tensor empty_strided_tensor(IntList sizes, IntList strides, DType dtype, Device device = kCPU);
/// Makes another Tensor over the same storage. Records `base` and `origin` if `relate` is true.
Tensor alias_tensor(const Tensor& of, IntList sizes, IntList strides, int64_t offset, DType dtype,
                    bool relate, ViewOrigin origin = ViewOrigin::kRecorded);
/// Like alias_tensor, but moves from the lists.
Tensor alias_moved(const Tensor& of, Dims&& sizes, Dims&& strides, int64_t offset, DType dtype,
                   bool relate, ViewOrigin origin = ViewOrigin::kRecorded);

/// "float32[2, 3] on cpu"
std::string to_string(const Tensor& tensor);

}  // namespace lockstep
