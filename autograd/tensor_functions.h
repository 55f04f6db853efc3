#pragma once

#include <array>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

using TensorFunction = std::function<Tensor(TensorList inputs)>;
using TensorsFunction = std::function<std::vector<Tensor>(TensorList inputs)>;

namespace detail {

// Converts the result of a function of tensors to a list and back.
template <class R>
struct TensorResult;

template <>
struct TensorResult<Tensor> {
  static std::vector<Tensor> list(Tensor result) { return {std::move(result)}; }
  static Tensor from(std::vector<Tensor> list) { return std::move(list[0]); }
};
template <>
struct TensorResult<std::vector<Tensor>> {
  static std::vector<Tensor> list(std::vector<Tensor> result) { return result; }
  static std::vector<Tensor> from(std::vector<Tensor> list) { return list; }
};
template <class... T>
struct TensorResult<std::tuple<T...>> {
  static_assert((std::is_same_v<T, Tensor> && ...));
  static std::vector<Tensor> list(const std::tuple<T...>& result) {
    return std::apply([](const T&... each) { return std::vector<Tensor>{each...}; }, result);
  }
  static std::tuple<T...> from(std::vector<Tensor> list) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>(std::move(list[I])...);
    }
    (std::index_sequence_for<T...>());
  }
};
template <>
struct TensorResult<std::pair<Tensor, Tensor>> {
  static std::vector<Tensor> list(const std::pair<Tensor, Tensor>& result) {
    return {result.first, result.second};
  }
  static std::pair<Tensor, Tensor> from(std::vector<Tensor> list) {
    return {std::move(list[0]), std::move(list[1])};
  }
};
template <size_t n>
struct TensorResult<std::array<Tensor, n>> {
  static std::vector<Tensor> list(const std::array<Tensor, n>& result) {
    return {result.begin(), result.end()};
  }
  static std::array<Tensor, n> from(std::vector<Tensor> list) {
    std::array<Tensor, n> result;
    std::move(list.begin(), list.end(), result.begin());
    return result;
  }
};

/// Calls `function` with the first sizeof...(T) tensors of a list.
template <class... T, class F>
decltype(auto) call_with_list(const F& function, TensorList list) {
  return [&]<size_t... I>(std::index_sequence<I...>)->decltype(auto) {
    return function(list[I]...);
  }
  (std::index_sequence_for<T...>());
}

template <class F, class... T>
using ResultOf = std::remove_cvref_t<std::invoke_result_t<const F&, const T&...>>;

}  // namespace detail

}  // namespace lockstep
