#include "core/ops/linalg/batching_matrices.h"

#include <algorithm>

#include "core/ops/view/view.h"

namespace lockstep::batching {

void matrices(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  for (size_t i = 0; i < call.count(); ++i) call.set_front(i);
  for (Value& value : call.call()) {
    const Tensor result = value.take_tensor();
    const bool left_out = result.dim() == 1 && result.numel() == 0 && call.batch() > 0;
    call.give(left_out ? result.expand({call.batch(), 0}) : result);
  }
}

void systems(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const int64_t rank = std::max(call.rank(0), call.rank(1));
  Dims factors{call.batch()};
  factors.append(call.sample_sizes(0).begin(), call.sample_sizes(0).end());
  call.set(0, call.front(0, rank));
  call.set(1, call.front(1, rank));
  SmallVector<Value, 4> results = call.call();
  call.give(results[0].take_tensor());
  // The factorization has the sizes of the first argument, which front may have extended by ones.
  call.give(results[1].take_tensor().view(factors));
  factors.pop_back();
  call.give(results[2].take_tensor().view(factors));
  factors.pop_back();
  call.give(results[3].take_tensor().view(factors));
}

}  // namespace lockstep::batching
