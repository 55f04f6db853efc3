#pragma once

// C++ interface for plug-ins: typed functions over core/plugin/plugin_abi.h. Needs only C++17, that
// header and its own three parts; it is compiled into the plug-in and is not part of the ABI.
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
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/plugin/plugin_gpu.h"
#include "core/plugin/plugin_tensors.h"
#include "core/plugin/plugin_values.h"

#pragma GCC visibility push(hidden)

namespace lockstep::plugin {

/// Collects the results of a shape rule.
class Rule {
 public:
  explicit Rule(ls_call* call) : call_(call) {}

  void result(const std::vector<int64_t>& sizes, DType dtype) {
    add(sizes.data(), static_cast<int32_t>(sizes.size()), dtype);
  }
  /// Adds a row-major result of the same sizes and dtype.
  void result_like(const View& view) { add(view.sizes(), view.rank(), view.dtype()); }
  /// Marks the next result as absent in this call.
  void no_result() { add(nullptr, -1, DType::kF32); }
  /// Casts tensor arguments of other dtypes to `dtype`.
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

/// One call of a derivative. Tensor arguments are numbered as in the ABI: list elements count each.
class Backward {
 public:
  explicit Backward(ls_call* call) : call_(call) {}

  /// Gradient of result `i`; undefined if it has none.
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
  /// Argument `i` of the schema, of any type except tensors.
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

/// Tells which arguments of a batching rule have a leading batch dimension.
class Batch {
 public:
  explicit Batch(ls_call* call) : call_(call) {}
  bool has(uint32_t argument) const { return detail::host->is_batched(call_, argument) != 0; }

 private:
  ls_call* call_;
};

namespace detail {

/// Whether a kernel's parameter receives a result.
template <class T>
constexpr bool kIsResult = std::is_same_v<Bare<T>, Result> || std::is_same_v<Bare<T>, NewResult>;

template <class... A>
constexpr uint32_t leading_results() {
  uint32_t count = 0;
  bool leading = true;
  (..., (leading = leading && (kIsResult<A> || std::is_same_v<Bare<A>, Gpu>),
         count += leading && kIsResult<A> ? 1 : 0));
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

inline void set_value(ls_call* call, uint32_t index, const ls_value& value) {
  check(host->set_value(call, index, &value));
}
template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, Number>, int> = 0>
void set_results(ls_call* call, const T& result) {
  set_value(call, 0, value_of(result));
}

/// C functions that call a C++ function pointer, which is passed as `data`.
template <class F>
struct Thunk;
template <class R, class... A>
struct Thunk<R (*)(A...)> {
  using Function = R (*)(A...);
  static Function function(void* data) { return reinterpret_cast<Function>(data); }

  static int kernel(void* data, ls_call* call) {
    return guarded([&] { kernel(function(data), call, std::index_sequence_for<A...>()); });
  }
  /// Calls a function whose first parameter is constructed from the call: Rule, Batch or Backward.
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
    (..., (text += i++ < kBefore ? "" : spelled<A>(text.empty())));
    text += " ->";
    for (uint32_t r = 0; r < kResults; ++r) text += r == 0 ? " Tensor" : ", Tensor";
    if constexpr (!std::is_void_v<R>) {
      text += (kResults == 0 ? " " : ", ") + Parameter<Bare<R>>::type();
    }
    return text;
  }

 private:
  static constexpr uint32_t kResults = leading_results<A...>();
  static constexpr uint32_t kGpu = (0 + ... + (std::is_same_v<Bare<A>, Gpu> ? 1 : 0));
  static constexpr uint32_t kBefore = kGpu + kResults;  ///< parameters before the arguments

  template <class T>
  static std::string spelled(bool first) {
    if constexpr (kIsResult<T> || std::is_same_v<Bare<T>, Gpu>) {
      return "";
    } else {
      return (first ? "" : ", ") + Parameter<Bare<T>>::type();
    }
  }
  template <class T, size_t I>
  static Bare<T> parameter(ls_call* call) {
    if constexpr (std::is_same_v<Bare<T>, Gpu>) {
      static_assert(I == 0, "the Gpu comes first");
      return Gpu(call);
    } else if constexpr (kIsResult<T>) {
      return Bare<T>(call, static_cast<uint32_t>(I) - kGpu);
    } else {
      return Parameter<Bare<T>>::get(call, static_cast<uint32_t>(I) - kBefore);
    }
  }
  template <size_t... I>
  static void kernel(Function function, ls_call* call, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      function(parameter<A, I>(call)...);
    } else {
      set_value(call, kResults, value_of(function(parameter<A, I>(call)...)));
    }
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

/// Converts a function, or a lambda without captures, to a function pointer.
template <class F>
auto pointer(F function) {
  return +function;
}

}  // namespace detail

/// An operator being defined; the ABI documents each part.
class OpBuilder {
 public:
  explicit OpBuilder(ls_op* op) : op_(op) {}

  /// Signature: `void(Rule&, arguments...)`, tensors as View.
  template <class F>
  OpBuilder& rule(F function) {
    const auto pointer = detail::pointer(function);
    detail::check(detail::host->set_rule(op_, &detail::Thunk<decltype(+pointer)>::rule,
                                         reinterpret_cast<void*>(pointer)));
    return *this;
  }
  /// Signature: `void(Result..., arguments...)`, tensors as View, those of type `Tensor(a!)` as
  /// Writable; for Backend::kCUDA `void(Gpu, Result..., arguments...)`. Without a rule (dynamic),
  /// each tensor result is a NewResult, and a number, which must be the last result, is returned.
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
  /// Kernels make the results, instead of a rule; see `set_dynamic` of the ABI.
  OpBuilder& dynamic() {
    detail::check(detail::host->set_dynamic(op_));
    return *this;
  }
  /// Signature: `void(Backward&)`.
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
  /// Signature: `Tensor(arguments...)`, or returning a vector of them, or a number; tensors as
  /// Tensor.
  template <class F>
  OpBuilder& body(F function) {
    const auto pointer = detail::pointer(function);
    detail::check(detail::host->set_body(op_, &detail::Thunk<decltype(+pointer)>::body,
                                         reinterpret_cast<void*>(pointer)));
    return *this;
  }
  /// Signature: `Tensor(const Batch&, arguments...)`, or returning a vector of them; tensors as
  /// Tensor.
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

/// Registers operators and overrides; the parameter of LS_PLUGIN.
class Library {
 public:
  explicit Library(ls_plugin* plugin) : plugin_(plugin) {}

  OpBuilder define(const char* schema, const char* doc) {
    ls_op* const op = detail::host->define(plugin_, schema, doc);
    if (op == nullptr) throw detail::HostFailure();
    return OpBuilder(op);
  }
  /// Replaces an operator's kernel by one that has the form of OpBuilder::kernel.
  template <class F>
  void override_kernel(const char* op, F function, Strides strides = Strides::kContiguous,
                       Backend backend = Backend::kCPU) {
    const auto pointer = detail::pointer(function);
    using Thunk = detail::Thunk<decltype(+pointer)>;
    detail::check(detail::host->override_kernel(
        plugin_, op, static_cast<int32_t>(backend), static_cast<int32_t>(strides),
        Thunk::type().c_str(), &Thunk::kernel, reinterpret_cast<void*>(pointer)));
  }
  /// Adds a pass over the graphs of compiled functions: it takes the text of a graph and returns
  /// that of one that computes the same bits (`add_graph_pass` of core/plugin/plugin_abi.h).
  void graph_pass(const char* name, std::string (*pass)(const std::string& graph)) {
    detail::check(detail::host->add_graph_pass(
        plugin_, name,
        [](void* data, const char* graph, ls_text* result) {
          return detail::guarded([&] {
            const std::string changed =
                reinterpret_cast<std::string (*)(const std::string&)>(data)(graph);
            detail::check(detail::host->set_text(result, changed.data(), changed.size()));
          });
        },
        reinterpret_cast<void*>(pass)));
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

/// Defines the plug-in's entry point; use once in a library, outside any namespace:
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
