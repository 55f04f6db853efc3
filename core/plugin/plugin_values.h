#pragma once

// Conversion of arguments between plug-ins in C++ and the host, and calls of operators; part of
// core/plugin/plugin_wrapper.h.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/plugin/plugin_tensors.h"

// Hidden visibility: plug-ins in one process share none of these symbols, so each can be unloaded.
#pragma GCC visibility push(hidden)

namespace lockstep::plugin {

namespace detail {

/// Schema type of a C++ parameter type T, and how it is read from a call.
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
/// defaults may be omitted; std::nullopt passes an absent optional argument.
template <class... A>
Tensor call(const char* op, const A&... arguments) {
  const ls_value values[] = {detail::value_of(arguments)..., ls_value{}};
  ls_tensor* result = nullptr;
  detail::check(detail::host->call(op, values, sizeof...(A), &result, 1, nullptr));
  return Tensor::adopt(result);
}

/// Calls an operator whose result is a number: `call_for<bool>("equal", a, b)`.
template <class T, class... A>
T call_for(const char* op, const A&... arguments) {
  const ls_value values[] = {detail::value_of(arguments)..., ls_value{}};
  ls_value result{};
  detail::check(detail::host->call_for_value(op, values, sizeof...(A), &result));
  if constexpr (std::is_same_v<T, Number>) {
    return Number{result};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(Number{result}.to_double());
  } else {
    return static_cast<T>(Number{result}.to_int());
  }
}

/// Calls an operator of at most 64 tensor results.
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

}  // namespace lockstep::plugin

#pragma GCC visibility pop
