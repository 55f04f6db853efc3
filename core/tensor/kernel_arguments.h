#pragma once

#include <tuple>
#include <type_traits>

#include "core/tensor/tensor.h"

namespace lockstep {

/// A tensor as a kernel sees it: address and geometry, without ownership and without operators. An
/// absent optional tensor has `defined() == false`. `sizes` and `strides` belong to the caller.
struct TensorArg {
  void* address = nullptr;
  const int64_t* size_data = nullptr;
  const int64_t* stride_data = nullptr;
  int64_t numel = 0;
  int32_t rank = -1;
  DType dtype = DType::kF32;
  bool contiguous = false;

  TensorArg() = default;
  explicit TensorArg(const TensorImpl& impl) { refer_to(impl); }

  /// Fills it from `impl` in place: a copy of a freshly written one would stall on store
  /// forwarding.
  void refer_to(const TensorImpl& impl) {
    address = impl.data();
    size_data = impl.sizes.data();
    stride_data = impl.strides.data();
    numel = impl.numel;
    rank = static_cast<int32_t>(impl.sizes.size());
    dtype = impl.dtype;
    contiguous = impl.contiguous;
  }

  bool defined() const { return rank >= 0; }
  IntList sizes() const { return std::span(size_data, static_cast<size_t>(rank)); }
  IntList strides() const { return std::span(stride_data, static_cast<size_t>(rank)); }
  /// Size of dimension `i`; -1 means the last. Not checked.
  int64_t size(int i) const { return size_data[i < 0 ? i + rank : i]; }
  int64_t stride(int i) const { return stride_data[i < 0 ? i + rank : i]; }
};

/// An argument that the kernel reads.
struct In : TensorArg {
  using TensorArg::TensorArg;
  template <class T>
  const T* data() const {
    return static_cast<const T*>(address);
  }
};

/// A result, or an argument of type `Tensor(a!)`, which the kernel writes.
struct Out : TensorArg {
  using TensorArg::TensorArg;
  template <class T>
  T* data() const {
    return static_cast<T*>(address);
  }
  In as_in() const {
    In in;
    static_cast<TensorArg&>(in) = *this;
    return in;
  }
};

using InList = std::span<const In>;
using OutList = std::span<const Out>;

/// The type of a structured kernel's parameter for an operator's argument of type A.
template <class A>
struct KernelParameter {
  using type = A;
};
template <>
struct KernelParameter<const Tensor&> {
  using type = const In&;
};
template <>
struct KernelParameter<OptionalTensor> {
  using type = const In&;
};
template <>
struct KernelParameter<TensorList> {
  using type = InList;
};
template <>
struct KernelParameter<OptionalTensorList> {
  using type = InList;
};
template <>
struct KernelParameter<MutableTensorList> {
  using type = OutList;
};

/// The type of a structured kernel: results first, then the arguments.
template <class Signature>
struct StructuredKernel;
template <class... A>
struct StructuredKernel<Tensor(A...)> {
  using type = void(const Out&, typename KernelParameter<A>::type...);
};
template <class... R, class... A>
struct StructuredKernel<std::tuple<R...>(A...)> {
  template <class>
  using Result = const Out&;
  using type = void(Result<R>..., typename KernelParameter<A>::type...);
};
template <class... A>
struct StructuredKernel<void(A...)> {
  using type = void(typename KernelParameter<A>::type...);
};

/// The strides that a kernel accepts. The wrapper makes (counted) copies of other tensors.
enum class Strides : uint8_t {
  kAny,         ///< reads and writes any strides
  kContiguous,  ///< row-major arguments and results only
  kMatrix,      ///< the last two dimensions of each argument row- or column-major, with any leading
                ///< dimension; results row-major
};

}  // namespace lockstep
