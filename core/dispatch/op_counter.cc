#include "core/dispatch/op_counter.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/dispatch/value_tensors.h"

namespace lockstep {

namespace {

int64_t bytes_of(std::span<const Value> values) {
  int64_t bytes = 0;
  for (const Value& value : values) {
    each_defined_tensor(
        value, [&](const Tensor& tensor) { bytes += static_cast<int64_t>(tensor.nbytes()); });
  }
  return bytes;
}

}  // namespace

OpCount& OpCount::operator+=(const OpCount& other) {
  calls += other.calls;
  flops += other.flops;
  bytes += other.bytes;
  return *this;
}

OpCount count_call(const Operator& op, const Stack& stack) {
  OpCount count{1, 0, 0};
  const std::span<const Value> results(stack.results().data(), stack.results().size());
  if (op.flops() != nullptr) count.flops = op.flops()(stack.arguments(), results);
  if (op.kind() != OpKind::kView) {
    count.bytes = bytes_of(stack.arguments());
    // An in-place or out= result is an argument and was counted with them.
    if (op.alias_argument() < 0) count.bytes += bytes_of(results);
  }
  return count;
}

void OpCounter::call(const Operator& op, KeySet keys, Stack& stack) {
  pass_on(op, keys, stack);
  counts_[static_cast<size_t>(current_phase())][op.name()] += count_call(op, stack);
}

OpCount OpCounter::total(Phase phase) const {
  OpCount sum;
  for (const auto& [name, count] : counts(phase)) sum += count;
  return sum;
}

OpCount OpCounter::total() const {
  OpCount sum;
  for (int i = 0; i < kPhases; ++i) sum += total(static_cast<Phase>(i));
  return sum;
}

std::string OpCounter::table() const {
  std::string text = fmt::format("{:<10} {:<40} {:>8} {:>16} {:>16}\n", "phase", "operator",
                                 "calls", "flops", "bytes");
  for (int i = 0; i < kPhases; ++i) {
    const Phase phase = static_cast<Phase>(i);
    std::vector<std::pair<std::string, OpCount>> rows(counts(phase).begin(), counts(phase).end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
    for (const auto& [op, count] : rows) {
      text += fmt::format("{:<10} {:<40} {:>8} {:>16} {:>16}\n", name(phase), op, count.calls,
                          count.flops, count.bytes);
    }
  }
  return text;
}

void OpCounter::reset() {
  for (Counts& counts : counts_) counts.clear();
}

}  // namespace lockstep
