#include "autograd/kept_results.h"

#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/scoped_value.h"
#include "core/ops/pointwise/pointwise.h"

namespace lockstep {

namespace {

/// Whether results of the operator are kept. A call that writes into an argument has none.
bool is_kept(const Operator& op) { return op.flops() != nullptr && op.alias_argument() < 0; }

/// Another tensor over the same elements: the result itself gets a history, which leads to what
/// keeps it.
Tensor detached(const Tensor& result) {
  return alias_tensor(result, result.sizes(), result.strides(), result.storage_offset(),
                      result.dtype(), false);
}

}  // namespace

void KeptResults::Recording::call(const Operator& op, KeySet keys, Stack& stack) {
  pass_on(op, keys, stack);
  if (!is_kept(op)) return;
  const ScopedValue<const SavedTensorHooksGuard*> outside(detail::saved_tensor_hooks,
                                                          hooks_outside_);
  Call call{.op = &op.root(),
            .results = {},
            .drops_gelu = drops_gelu_ && op.root().name() == "linear_gelu",
            .random_after = default_generator().state()};
  for (size_t i = 0; i < stack.results().size(); ++i) {
    const Value& result = stack.results()[i];
    const bool is_kept_here =
        result.is_tensor() && result.tensor().defined() && !(call.drops_gelu && i == 0);
    call.results.push_back(is_kept_here ? SavedTensor::argument(detached(result.tensor()))
                                        : SavedTensor());
  }
  into_.calls_.push_back(std::move(call));
}

void KeptResults::Replay::call(const Operator& op, KeySet keys, Stack& stack) {
  if (!is_kept(op)) return pass_on(op, keys, stack);
  const bool is_known = next_ < from_.calls_.size() && from_.calls_[next_].op == &op.root();
  LS_CHECK(
      is_known, AutogradError,
      "[checkpoint] recomputation did not do what forward did: expected {} as the {}. product, "
      "got {}. The function must compute the same when it is called again.",
      next_ < from_.calls_.size() ? from_.calls_[next_].op->name() : "no operator", next_ + 1,
      op.name());
  const Call& call = from_.calls_[next_++];
  const NoGradGuard no_grad;
  SmallVector<Tensor, 4> results;
  for (const SavedTensor& kept : call.results) {
    results.push_back(kept.defined() ? detached(kept.unpack("checkpoint", nullptr)) : Tensor());
  }
  if (call.drops_gelu) results[0] = gelu(results[1], "tanh");
  for (Tensor& result : results) stack.results().push_back(Value(std::move(result)));
  default_generator().set_state(call.random_after);
}

}  // namespace lockstep
