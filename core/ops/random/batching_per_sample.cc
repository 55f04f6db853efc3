#include <cstdio>
#include <set>

#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/base/log_text.h"
#include "core/base/mutex.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/batching.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

Mutex g_mutex;
std::set<std::string>& noted() LS_REQUIRES(g_mutex) {
  static std::set<std::string>* const names = new std::set<std::string>();
  return *names;
}

bool warns() {
  static const bool on = environment_flag("LOCKSTEP_WARN_VMAP");
  return on;
}

void note(const Operator& op) {
  const MutexLock lock(g_mutex);
  if (!noted().insert(op.name()).second || !warns()) return;
  write_log(stderr,
            fmt::format("vmap: [{}] has no batching rule for this call, and ran once per sample\n",
                        op.name()));
}

/// Argument `i` of sample `b`.
Value sample_of(const BatchedCall& call, size_t i, int64_t b) {
  if (!call.is_batched(i)) return call.value(i);
  return map_tensors(call.value(i), [b](const Tensor& each) { return each.select(0, b); });
}

using Results = SmallVector<Value, 4>;

Results run_sample(const BatchedCall& call, int64_t b) {
  SmallVector<Value, 8> arguments;
  for (size_t i = 0; i < call.count(); ++i) arguments.push_back(sample_of(call, i, b));
  Stack stack(std::span<Value>(arguments.data(), arguments.size()));
  call.op().call_boxed(stack);
  Results results;
  for (const Value& result : stack.results()) results.push_back(result.own());
  return results;
}

/// The r-th result of every sample, stacked.
void give_stacked(BatchedCall& call, std::vector<Results>& samples, size_t r) {
  const Value& first = samples[0][r];
  if (first.is_none()) return call.give(Tensor());
  if (first.is_tensor()) {
    std::vector<Tensor> all;
    for (Results& sample : samples) all.push_back(sample[r].take_tensor());
    return call.give(stack(all, 0));
  }
  LS_CHECK(first.is_tensor_list(), DispatchError,
           "[{}] returns a number, which vmap cannot batch. Use an operator that returns a tensor.",
           call.op().name());
  std::vector<Tensor> list;
  for (size_t k = 0; k < first.tensors().size(); ++k) {
    std::vector<Tensor> all;
    for (const Results& sample : samples) all.push_back(sample[r].tensors()[k]);
    list.push_back(stack(all, 0));
  }
  call.give(std::move(list));
}

}  // namespace

void batching::per_sample(const Operator& op, uint64_t batched, Stack& stack) {
  note(op);
  each_sample(op, batched, stack, [] {});
}

void batching::each_sample(const Operator& op, uint64_t batched, Stack& stack,
                           FunctionRef<void()> before) {
  BatchedCall call(op, batched, stack);
  LS_CHECK(
      call.batch() > 0, ShapeError,
      "[{}] has no batching rule for this call, so its results are unknown for an empty batch: "
      "expected at least one sample, got 0. Skip empty batches.",
      op.name());
  std::vector<Results> samples;
  for (int64_t b = 0; b < call.batch(); ++b) {
    before();
    samples.push_back(run_sample(call, b));
  }
  if (op.alias_argument() >= 0) {
    // The samples are views of this tensor, so the calls have written into it.
    return call.give(call.tensor(static_cast<size_t>(op.alias_argument())));
  }
  for (size_t r = 0; r < samples[0].size(); ++r) give_stacked(call, samples, r);
}

std::vector<std::string> operators_run_per_sample() {
  const MutexLock lock(g_mutex);
  return {noted().begin(), noted().end()};
}

void forget_operators_run_per_sample() {
  const MutexLock lock(g_mutex);
  noted().clear();
}

}  // namespace lockstep
