#pragma once

#include <tuple>
#include <type_traits>

#include "core/ops/factory/copy.h"

namespace lockstep {

/// Writes each result of an operator into the destination of its out= form (see clone_out) and
/// returns the destinations. For an undefined result (one that `output_mask` leaves out) the
/// destination is not written and an undefined tensor is returned in its place.
template <class... T>
std::tuple<T...> write_results(const std::tuple<T...>& results,
                               const std::type_identity_t<T>&... outs) {
  const auto write = [](const Tensor& out, const Tensor& result) {
    return result.defined() ? clone_out(out, result) : Tensor();
  };
  return std::apply([&](const T&... each) { return std::tuple<T...>{write(outs, each)...}; },
                    results);
}

}  // namespace lockstep
