#pragma once

// Plug-ins in C++: typed functions over core/plugin_abi.h. It needs C++17 and that header alone, is
// compiled into the plug-in, and takes no part in the ABI.
//
//   void scale(Result out, View self, double factor);          // a kernel
//   LS_PLUGIN(library) {
//     library.define("my::scale(Tensor self, float factor) -> Tensor", "self times factor.")
//         .rule([](Rule& rule, View self, double) { rule.result_like(self); })
//         .kernel(&scale)
//         .derivative({}, [](Backward& call) {
//           call.set(0, plugin::call("mul.Scalar", call.gradient(), call.argument<double>(1)));
//         });
//   }
//
// Functions may throw: what() becomes the error of the operator's call.

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/plugin_abi.h"

// Hidden: two plug-ins in one process share nothing of this, and each can be unloaded.
#pragma GCC visibility push(hidden)

namespace lockstep::plugin {

enum class DType : int32_t { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };
enum class Strides : int32_t { kAny, kContiguous, kMatrix };
enum class Backend : int32_t { kCPU, kHost, kCUDA, kMeta };
enum class Autocast : int32_t { kNone, kLowerPrecision, kF32, kPromote };

/// An error with the class that it has for the operator's caller: LS_ERROR_SHAPE, ...
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

/// The host refused a call; it has noted why.
struct HostFailure : std::exception {
  const char* what() const noexcept override { return host->error(); }
};

inline void check(int status) {
  if (status != 0) throw HostFailure();
}

/// Runs what may throw on behalf of the host.
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

/// A tensor argument of a rule or kernel: geometry and, in kernels, elements to read. Borrowed.
class View {
 public:
  explicit View(const ls_tensor_view& view) : view_(view) {}
  /// Argument `index` of a call.
  View(ls_call* call, uint32_t index) : View() {
    // Filled in place: a copy of what was just written would wait for it.
    detail::check(detail::host->argument_view(call, index, &view_));
  }

  bool defined() const { return view_.rank >= 0; }
  int rank() const { return view_.rank; }
  /// Of dimension `i`, not checked; -1 is the last.
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

/// A result, to be filled by the kernel.
class Result : public Writable {
 public:
  Result(ls_call* call, uint32_t index) {
    detail::check(detail::host->result_view(call, index, &view_));
  }
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

namespace detail {

/// How a parameter of C++ type T is spelled in schemas, and read from a call.
template <class T>
struct Parameter;

inline ls_value value_at(ls_call* call, uint32_t index) {
  ls_value value{};
  check(host->argument(call, index, &value));
  return value;
}

template <>
struct Parameter<View> {
  static std::string type() { return "Tensor"; }
  static View get(ls_call* call, uint32_t i) { return View(call, i); }
};
template <>
struct Parameter<Writable> {
  static std::string type() { return "Tensor"; }
  static Writable get(ls_call* call, uint32_t i) { return Writable(call, i); }
};
template <>
struct Parameter<std::optional<View>> {
  static std::string type() { return "Tensor?"; }
  static std::optional<View> get(ls_call* call, uint32_t i) {
    const View view(call, i);
    return view.defined() ? std::optional<View>(view) : std::nullopt;
  }
};
template <class V>
std::vector<V> list_at(ls_call* call, uint32_t index) {
  uint32_t length = 0;
  check(host->list_length(call, index, &length));
  std::vector<V> list;
  for (uint32_t j = 0; j < length; ++j) {
    ls_tensor_view view{};
    view.size = sizeof(view);
    check(host->list_view(call, index, j, &view));
    list.emplace_back(view);
  }
  return list;
}
template <>
struct Parameter<std::vector<View>> {
  static std::string type() { return "Tensor[]"; }
  static std::vector<View> get(ls_call* call, uint32_t i) { return list_at<View>(call, i); }
};
template <>
struct Parameter<std::vector<Writable>> {
  static std::string type() { return "Tensor[]"; }
  static std::vector<Writable> get(ls_call* call, uint32_t i) { return list_at<Writable>(call, i); }
};
template <>
struct Parameter<Tensor> {
  static std::string type() { return "Tensor"; }
  static Tensor get(ls_call* call, uint32_t i) {
    return Tensor::share(value_at(call, i).as.tensor);
  }
};
template <>
struct Parameter<std::vector<Tensor>> {
  static std::string type() { return "Tensor[]"; }
  static std::vector<Tensor> get(ls_call* call, uint32_t i) {
    const ls_value value = value_at(call, i);
    std::vector<Tensor> list;
    for (uint64_t j = 0; j < value.length; ++j) list.push_back(Tensor::share(value.as.tensors[j]));
    return list;
  }
};
template <>
struct Parameter<double> {
  static std::string type() { return "float"; }
  static double of(const ls_value& value) { return value.as.real; }
  static double get(ls_call* call, uint32_t i) { return of(value_at(call, i)); }
};
template <>
struct Parameter<int64_t> {
  static std::string type() { return "int"; }
  static int64_t of(const ls_value& value) { return value.as.integer; }
  static int64_t get(ls_call* call, uint32_t i) { return of(value_at(call, i)); }
};
template <>
struct Parameter<bool> {
  static std::string type() { return "bool"; }
  static bool of(const ls_value& value) { return value.as.integer != 0; }
  static bool get(ls_call* call, uint32_t i) { return of(value_at(call, i)); }
};
template <>
struct Parameter<DType> {
  static std::string type() { return "ScalarType"; }
  static DType of(const ls_value& value) { return static_cast<DType>(value.as.integer); }
  static DType get(ls_call* call, uint32_t i) { return of(value_at(call, i)); }
};
template <>
struct Parameter<Number> {
  static std::string type() { return "Scalar"; }
  static Number of(const ls_value& value) { return Number{value}; }
  static Number get(ls_call* call, uint32_t i) { return of(value_at(call, i)); }
};
template <>
struct Parameter<std::string_view> {
  static std::string type() { return "str"; }
  static std::string_view of(const ls_value& value) {
    return {value.as.text, static_cast<size_t>(value.length)};
  }
  static std::string_view get(ls_call* call, uint32_t i) { return of(value_at(call, i)); }
};
template <>
struct Parameter<std::vector<int64_t>> {
  static std::string type() { return "int[]"; }
  static std::vector<int64_t> of(const ls_value& value) {
    return {value.as.integers, value.as.integers + value.length};
  }
  static std::vector<int64_t> get(ls_call* call, uint32_t i) { return of(value_at(call, i)); }
};
template <>
struct Parameter<std::vector<double>> {
  static std::string type() { return "float[]"; }
  static std::vector<double> of(const ls_value& value) {
    return {value.as.reals, value.as.reals + value.length};
  }
  static std::vector<double> get(ls_call* call, uint32_t i) { return of(value_at(call, i)); }
};
template <class T>
struct Parameter<std::optional<T>> {
  static std::string type() { return Parameter<T>::type() + "?"; }
  static std::optional<T> get(ls_call* call, uint32_t i) {
    const ls_value value = value_at(call, i);
    if (value.kind == LS_VALUE_NONE) return std::nullopt;
    return Parameter<T>::of(value);
  }
};

template <class T>
using Bare = std::remove_cv_t<std::remove_reference_t<T>>;

// C++ value -> argument of an operator call.
inline ls_value value_of(const Tensor& tensor) {
  ls_value value{};
  value.kind = LS_VALUE_TENSOR;
  value.as.tensor = tensor.handle();
  return value;
}
inline ls_value value_of(std::nullopt_t) { return ls_value{}; }
inline ls_value value_of(bool flag) {
  ls_value value{};
  value.kind = LS_VALUE_BOOL;
  value.as.integer = flag ? 1 : 0;
  return value;
}
inline ls_value value_of(double real) {
  ls_value value{};
  value.kind = LS_VALUE_FLOAT;
  value.as.real = real;
  return value;
}
template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
ls_value value_of(T integer) {
  ls_value value{};
  value.kind = LS_VALUE_INT;
  value.as.integer = static_cast<int64_t>(integer);
  return value;
}
inline ls_value value_of(const Number& number) { return number.value; }
inline ls_value value_of(DType dtype) {
  ls_value value{};
  value.kind = LS_VALUE_DTYPE;
  value.as.integer = static_cast<int64_t>(dtype);
  return value;
}
inline ls_value value_of(const std::vector<int64_t>& list) {
  ls_value value{};
  value.kind = LS_VALUE_INTS;
  value.as.integers = list.data();
  value.length = list.size();
  return value;
}
inline ls_value value_of(std::string_view text) {
  ls_value value{};
  value.kind = LS_VALUE_TEXT;
  value.as.text = text.data();
  value.length = text.size();
  return value;
}
inline ls_value value_of(const char* text) { return value_of(std::string_view(text)); }

}  // namespace detail

/// Calls an operator that has one result: `call("mul.Tensor", a, b)`. Trailing arguments with
/// defaults may be left out; std::nullopt is an absent one.
template <class... A>
Tensor call(const char* op, const A&... arguments) {
  const ls_value values[] = {detail::value_of(arguments)..., ls_value{}};
  ls_tensor* result = nullptr;
  detail::check(detail::host->call(op, values, sizeof...(A), &result, 1, nullptr));
  return Tensor::adopt(result);
}

/// The same for operators of at most 64 results.
template <class... A>
std::vector<Tensor> call_many(const char* op, const A&... arguments) {
  const ls_value values[] = {detail::value_of(arguments)..., ls_value{}};
  ls_tensor* results[64] = {};
  uint32_t count = 0;
  detail::check(detail::host->call(op, values, sizeof...(A), results, 64, &count));
  std::vector<Tensor> tensors;
  for (uint32_t i = 0; i < count; ++i) tensors.push_back(Tensor::adopt(results[i]));
  return tensors;
}

/// Calls `body(first, last)` on parts of [0, count) on the host's threads; see the ABI.
template <class F>
void parallel_for(int64_t count, int64_t grain, const F& body) {
  const auto run = [](void* data, int64_t first, int64_t last) {
    return detail::guarded([&] { (*static_cast<const F*>(data))(first, last); });
  };
  detail::check(detail::host->parallel_for(count, grain, run, const_cast<F*>(&body)));
}

/// What a shape rule fills in.
class Rule {
 public:
  explicit Rule(ls_call* call) : call_(call) {}

  void result(const std::vector<int64_t>& sizes, DType dtype) {
    add(sizes.data(), static_cast<int32_t>(sizes.size()), dtype);
  }
  /// Of the same sizes and dtype, row-major.
  void result_like(const View& view) { add(view.sizes(), view.rank(), view.dtype()); }
  /// This result is absent in this call.
  void no_result() { add(nullptr, -1, DType::kF32); }
  /// Casts tensor arguments of other dtypes.
  void compute(DType dtype) {
    detail::check(detail::host->set_compute_dtype(call_, static_cast<int32_t>(dtype)));
  }

 private:
  void add(const int64_t* sizes, int32_t rank, DType dtype) {
    ls_output_spec spec{};
    spec.size = sizeof(spec);
    spec.sizes = sizes;
    spec.rank = rank;
    spec.dtype = static_cast<int32_t>(dtype);
    detail::check(detail::host->add_result(call_, &spec));
  }
  ls_call* call_;
};

/// One call of a derivative. Tensors count by themselves, as in the ABI.
class Backward {
 public:
  explicit Backward(ls_call* call) : call_(call) {}

  /// Of result `i`; undefined when none arrived.
  Tensor gradient(uint32_t i = 0) const {
    ls_tensor* handle = nullptr;
    detail::check(detail::host->gradient(call_, i, &handle));
    return Tensor::share(handle);
  }
  Tensor saved(uint32_t i) const {
    ls_tensor* handle = nullptr;
    detail::check(detail::host->saved(call_, i, &handle));
    return Tensor::share(handle);
  }
  /// Argument `i` of the schema, any type but a tensor.
  template <class T>
  T argument(uint32_t i) const {
    return detail::Parameter<T>::get(call_, i);
  }
  View input(uint32_t i) const {
    ls_tensor_view view{};
    view.size = sizeof(view);
    detail::check(detail::host->input_view(call_, i, &view));
    return View(view);
  }
  bool needs(uint32_t i) const { return detail::host->needs_gradient(call_, i) != 0; }
  void set(uint32_t i, const Tensor& gradient) {
    detail::check(detail::host->set_gradient(call_, i, gradient.handle()));
  }
  Tensor unbroadcast(const Tensor& gradient, uint32_t i) const {
    ls_tensor* handle = nullptr;
    detail::check(detail::host->unbroadcast(call_, gradient.handle(), i, &handle));
    return Tensor::adopt(handle);
  }

 private:
  ls_call* call_;
};

/// Which arguments of a batching rule have a batch dimension in front.
class Batch {
 public:
  explicit Batch(ls_call* call) : call_(call) {}
  bool has(uint32_t argument) const { return detail::host->is_batched(call_, argument) != 0; }

 private:
  ls_call* call_;
};

namespace detail {

template <class... A>
constexpr uint32_t leading_results() {
  uint32_t count = 0;
  bool leading = true;
  (..., (leading = leading && std::is_same_v<Bare<A>, Result>, count += leading ? 1 : 0));
  return count;
}

inline void set_results(ls_call* call, const Tensor& result) {
  check(host->set_result(call, 0, result.handle()));
}
inline void set_results(ls_call* call, const std::vector<Tensor>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    check(host->set_result(call, static_cast<uint32_t>(i), results[i].handle()));
  }
}

/// The C functions around a C++ function pointer, which travels as `data`.
template <class F>
struct Thunk;
template <class R, class... A>
struct Thunk<R (*)(A...)> {
  using Function = R (*)(A...);
  static Function function(void* data) { return reinterpret_cast<Function>(data); }

  static int kernel(void* data, ls_call* call) {
    return guarded([&] { kernel(function(data), call, std::index_sequence_for<A...>()); });
  }
  /// A function whose first parameter is made from the call: Rule, Batch or Backward.
  static int rule(void* data, ls_call* call) {
    return guarded([&] { after_first(function(data), call); });
  }
  static int body(void* data, ls_call* call) {
    return guarded([&] { body(function(data), call, std::index_sequence_for<A...>()); });
  }

  /// "Tensor, float -> Tensor"
  static std::string type() {
    std::string text;
    uint32_t i = 0;
    (..., (text += i++ < kResults ? "" : spelled<A>(text.empty())));
    text += " ->";
    for (uint32_t r = 0; r < kResults; ++r) text += r == 0 ? " Tensor" : ", Tensor";
    return text;
  }

 private:
  static constexpr uint32_t kResults = leading_results<A...>();

  template <class T>
  static std::string spelled(bool first) {
    if constexpr (std::is_same_v<Bare<T>, Result>) {
      return "";
    } else {
      return (first ? "" : ", ") + Parameter<Bare<T>>::type();
    }
  }
  template <class T, size_t I>
  static Bare<T> parameter(ls_call* call) {
    if constexpr (std::is_same_v<Bare<T>, Result>) {
      return Result(call, static_cast<uint32_t>(I));
    } else {
      return Parameter<Bare<T>>::get(call, static_cast<uint32_t>(I) - kResults);
    }
  }
  template <size_t... I>
  static void kernel(Function function, ls_call* call, std::index_sequence<I...>) {
    function(parameter<A, I>(call)...);
  }
  template <size_t... I>
  static void body(Function function, ls_call* call, std::index_sequence<I...>) {
    set_results(call, function(Parameter<Bare<A>>::get(call, static_cast<uint32_t>(I))...));
  }

  template <class First, class... Rest>
  static void after_first(R (*function)(First, Rest...), ls_call* call) {
    after_first(function, call, std::index_sequence_for<Rest...>());
  }
  template <class First, class... Rest, size_t... I>
  static void after_first(R (*function)(First, Rest...), ls_call* call, std::index_sequence<I...>) {
    Bare<First> first(call);
    if constexpr (std::is_void_v<R>) {
      function(first, Parameter<Bare<Rest>>::get(call, static_cast<uint32_t>(I))...);
    } else {
      set_results(call,
                  function(first, Parameter<Bare<Rest>>::get(call, static_cast<uint32_t>(I))...));
    }
  }
};

/// A function, or a lambda without captures, as a function pointer.
template <class F>
auto pointer(F function) {
  return +function;
}

}  // namespace detail

/// An operator being defined; see the ABI for what each part means.
class OpBuilder {
 public:
  explicit OpBuilder(ls_op* op) : op_(op) {}

  /// `void(Rule&, arguments...)`, tensors as View.
  template <class F>
  OpBuilder& rule(F function) {
    const auto pointer = detail::pointer(function);
    detail::check(detail::host->set_rule(op_, &detail::Thunk<decltype(+pointer)>::rule,
                                         reinterpret_cast<void*>(pointer)));
    return *this;
  }
  /// `void(Result..., arguments...)`, tensors as View, those of type `Tensor(a!)` as Writable.
  template <class F>
  OpBuilder& kernel(F function, Strides strides = Strides::kContiguous,
                    Backend backend = Backend::kCPU) {
    const auto pointer = detail::pointer(function);
    using Thunk = detail::Thunk<decltype(+pointer)>;
    detail::check(detail::host->set_kernel(op_, static_cast<int32_t>(backend),
                                           static_cast<int32_t>(strides), Thunk::type().c_str(),
                                           &Thunk::kernel, reinterpret_cast<void*>(pointer)));
    return *this;
  }
  /// `void(Backward&)`
  template <class F>
  OpBuilder& derivative(std::initializer_list<const char*> saves, F function) {
    const auto pointer = detail::pointer(function);
    detail::check(detail::host->set_derivative(
        op_, saves.begin(), static_cast<uint32_t>(saves.size()),
        &detail::Thunk<decltype(+pointer)>::rule, reinterpret_cast<void*>(pointer)));
    return *this;
  }
  OpBuilder& not_differentiable(const char* reason) {
    detail::check(detail::host->set_not_differentiable(op_, reason));
    return *this;
  }
  /// `Tensor(arguments...)`, or a vector of them, tensors as Tensor.
  template <class F>
  OpBuilder& body(F function) {
    const auto pointer = detail::pointer(function);
    detail::check(detail::host->set_body(op_, &detail::Thunk<decltype(+pointer)>::body,
                                         reinterpret_cast<void*>(pointer)));
    return *this;
  }
  /// `Tensor(const Batch&, arguments...)`, or a vector of them, tensors as Tensor.
  template <class F>
  OpBuilder& batching(F function) {
    const auto pointer = detail::pointer(function);
    detail::check(detail::host->set_batching(op_, &detail::Thunk<decltype(+pointer)>::rule,
                                             reinterpret_cast<void*>(pointer)));
    return *this;
  }
  OpBuilder& autocast(Autocast autocast) {
    detail::check(detail::host->set_autocast(op_, static_cast<int32_t>(autocast)));
    return *this;
  }
  OpBuilder& in_place() {
    detail::check(detail::host->add_in_place_form(op_));
    return *this;
  }
  OpBuilder& out() {
    detail::check(detail::host->add_out_form(op_));
    return *this;
  }

 private:
  ls_op* op_;
};

/// What LS_PLUGIN registers with.
class Library {
 public:
  explicit Library(ls_plugin* plugin) : plugin_(plugin) {}

  OpBuilder define(const char* schema, const char* doc) {
    ls_op* const op = detail::host->define(plugin_, schema, doc);
    if (op == nullptr) throw detail::HostFailure();
    return OpBuilder(op);
  }
  /// Puts a kernel, as OpBuilder::kernel takes it, in front of an operator's own.
  template <class F>
  void override_kernel(const char* op, F function, Strides strides = Strides::kContiguous,
                       Backend backend = Backend::kCPU) {
    const auto pointer = detail::pointer(function);
    using Thunk = detail::Thunk<decltype(+pointer)>;
    detail::check(detail::host->override_kernel(
        plugin_, op, static_cast<int32_t>(backend), static_cast<int32_t>(strides),
        Thunk::type().c_str(), &Thunk::kernel, reinterpret_cast<void*>(pointer)));
  }

 private:
  ls_plugin* plugin_;
};

namespace detail {

inline int init(const ls_host* from, ls_plugin* plugin, void (*define)(Library&)) {
  host = from;
  return guarded([&] {
    Library library(plugin);
    define(library);
  });
}

}  // namespace detail
}  // namespace lockstep::plugin

#pragma GCC visibility pop

/// The plug-in's entry, once in a library and outside any namespace:
/// `LS_PLUGIN(library) { library.define(...)...; }`
#define LS_PLUGIN(library)                                                    \
  static void ls_plugin_define(::lockstep::plugin::Library& library);         \
  extern "C" {                                                                \
  const uint32_t ls_plugin_abi_version = LS_PLUGIN_ABI_VERSION;               \
  int ls_plugin_init(const ls_host* host, ls_plugin* plugin) {                \
    return ::lockstep::plugin::detail::init(host, plugin, &ls_plugin_define); \
  }                                                                           \
  }                                                                           \
  static void ls_plugin_define(::lockstep::plugin::Library& library)
