#pragma once

#include <vector>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/loss/class_targets.h"
#include "kernels/cpu/loss/exp_row.h"

namespace lockstep::cpu {

/// The loss of a row of logits x, 0 if its target is ignored; writes the row's logsumexp. `buffer`
/// has room for a row unless T is its own compute type.
template <class T, class C = ComputeType<T>>
C cross_entropy_of_row(const T* x, int64_t classes, int64_t target, C* buffer, C& logsumexp) {
  const C* row = read_row(x, classes, buffer);
  LogSumExp<C> total;
  total.add(row, classes);
  logsumexp = total.value();
  return target == kIgnoredClass ? C(0) : logsumexp - row[target];
}

/// dx[i] = scale (exp(x[i] - logsumexp) - (i == target)), 0 if the target is ignored. dx may be x.
template <class T, class C = ComputeType<T>>
void cross_entropy_gradient_of_row(T* dx, const T* x, int64_t classes, int64_t target, C logsumexp,
                                   C scale, C* buffer) {
  if (target == kIgnoredClass) {
    std::fill_n(dx, classes, T());
    return;
  }
  const C* row = read_row(x, classes, buffer);
  C* result = row_target<T>(dx, buffer);
#pragma GCC ivdep
  for (int64_t i = 0; i < classes; ++i) result[i] = scale * elementary::exp(row[i] - logsumexp);
  result[target] -= scale;
  finish_row<T>(dx, result, classes);
}

/// The sum of the rows' losses in their order, or their mean over the targets that are used.
template <class C>
C reduced_loss(const std::vector<C>& losses, const std::vector<int64_t>& targets, bool mean) {
  double loss = 0;
  for (const C each : losses) loss += static_cast<double>(each);
  return static_cast<C>(mean ? loss / static_cast<double>(count_used(targets)) : loss);
}

}  // namespace lockstep::cpu
