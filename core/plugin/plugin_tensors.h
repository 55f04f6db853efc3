#pragma once

// Tensors, numbers and errors of plug-ins in C++; part of core/plugin/plugin_wrapper.h.

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/plugin/plugin_abi.h"

// Hidden visibility: plug-ins in one process share none of these symbols, so each can be unloaded.
#pragma GCC visibility push(hidden)

namespace lockstep::plugin {

enum class DType : int32_t { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };
enum class Strides : int32_t { kAny, kContiguous, kMatrix };
enum class Backend : int32_t { kCPU, kHost, kCUDA, kMeta };
enum class Autocast : int32_t { kNone, kLowerPrecision, kF32, kPromote };

/// An error with a kind (LS_ERROR_SHAPE, ...) that decides the exception class for the caller.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& message, int32_t kind = LS_ERROR)
      : std::runtime_error(message), kind_(kind) {}
  int32_t kind() const { return kind_; }

 private:
  int32_t kind_;
};

namespace detail {

inline const ls_host* host = nullptr;

/// A host function failed; the host has stored the error.
struct HostFailure : std::exception {
  const char* what() const noexcept override { return host->error(); }
};

inline void check(int status) {
  if (status != 0) throw HostFailure();
}

/// Runs code that may throw, for a C function: an exception becomes an error of the host.
template <class F>
int guarded(F&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const HostFailure&) {
    return 1;
  } catch (const Failure& failure) {
    return host->fail(failure.kind(), failure.what());
  } catch (const std::exception& error) {
    return host->fail(LS_ERROR, error.what());
  } catch (...) {
    return host->fail(LS_ERROR, "an exception of unknown type");
  }
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kU8;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kI8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kI16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kI32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kI64;
  if constexpr (std::is_same_v<T, float>) return DType::kF32;
  if constexpr (std::is_same_v<T, double>) return DType::kF64;
  static_assert(std::is_arithmetic_v<T>, "no element type: use raw()");
}

}  // namespace detail

/// A borrowed tensor argument of a rule or kernel: geometry and, in kernels, elements to read.
class View {
 public:
  explicit View(const ls_tensor_view& view) : view_(view) {}
  /// Argument `index` of a call.
  View(ls_call* call, uint32_t index) : View() {
    // Filled in place: a copy of a freshly written struct would stall on store forwarding.
    detail::check(detail::host->argument_view(call, index, &view_));
  }

  bool defined() const { return view_.rank >= 0; }
  int rank() const { return view_.rank; }
  /// Size of dimension `i`, not checked; -1 means the last.
  int64_t size(int i) const { return view_.sizes[i < 0 ? i + view_.rank : i]; }
  int64_t stride(int i) const { return view_.strides[i < 0 ? i + view_.rank : i]; }
  const int64_t* sizes() const { return view_.sizes; }
  const int64_t* strides() const { return view_.strides; }
  int64_t numel() const {
    int64_t count = 1;
    for (int i = 0; i < view_.rank; ++i) count *= view_.sizes[i];
    return count;
  }
  DType dtype() const { return static_cast<DType>(view_.dtype); }
  const void* raw() const { return view_.data; }
  /// Throws unless T is the element type.
  template <class T>
  const T* data() const {
    require(detail::dtype_of<T>());
    return static_cast<const T*>(view_.data);
  }

 protected:
  View() { view_.size = sizeof(view_); }
  void require(DType wanted) const {
    if (dtype() != wanted) throw Failure("element type differs", LS_ERROR_DTYPE);
  }
  ls_tensor_view view_;
};

/// An argument of type `Tensor(a!)`, which the kernel may change.
class Writable : public View {
 public:
  using View::View;
  void* raw() const { return view_.data; }
  template <class T>
  T* data() const {
    require(detail::dtype_of<T>());
    return static_cast<T*>(view_.data);
  }

 protected:
  Writable() = default;
};

/// A result that the host has allocated and the kernel fills.
class Result : public Writable {
 public:
  Result(ls_call* call, uint32_t index) {
    detail::check(detail::host->result_view(call, index, &view_));
  }
};

/// A result of a dynamic operator, which the kernel allocates once it knows the size.
class NewResult {
 public:
  NewResult(ls_call* call, uint32_t index) : call_(call), index_(index) {}

  /// Allocates it row-major; call once.
  Writable make(const std::vector<int64_t>& sizes, DType dtype) const {
    ls_output_spec spec{};
    spec.size = sizeof(spec);
    spec.sizes = sizes.data();
    spec.rank = static_cast<int32_t>(sizes.size());
    spec.dtype = static_cast<int32_t>(dtype);
    ls_tensor_view view{};
    view.size = sizeof(view);
    detail::check(detail::host->new_result(call_, index_, &spec, &view));
    return Writable(view);
  }

 private:
  ls_call* call_;
  uint32_t index_;
};

/// A `Scalar`: a number that remembers whether it is a float.
struct Number {
  ls_value value;
  bool is_float() const { return value.kind == LS_VALUE_FLOAT; }
  double to_double() const {
    return is_float() ? value.as.real : static_cast<double>(value.as.integer);
  }
  int64_t to_int() const {
    return is_float() ? static_cast<int64_t>(value.as.real) : value.as.integer;
  }
};

/// A counted reference to a tensor, for derivatives and bodies. May be undefined.
class Tensor {
 public:
  Tensor() = default;
  static Tensor adopt(ls_tensor* handle) {
    Tensor tensor;
    tensor.handle_ = handle;
    return tensor;
  }
  static Tensor share(ls_tensor* handle) {
    if (handle != nullptr) detail::host->retain(handle);
    return adopt(handle);
  }
  Tensor(const Tensor& other) : Tensor(share(other.handle_)) {}
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_ != nullptr) detail::host->release(handle_);
  }

  bool defined() const { return handle_ != nullptr; }
  ls_tensor* handle() const { return handle_; }
  View view() const {
    ls_tensor_view view{};
    view.size = sizeof(view);
    detail::check(detail::host->tensor_view(handle_, &view));
    return View(view);
  }

 private:
  ls_tensor* handle_ = nullptr;
};

}  // namespace lockstep::plugin

#pragma GCC visibility pop
