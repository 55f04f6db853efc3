#include "launcher/bench/operator_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "core/base/json_line.h"
#include "core/tensor/stream.h"

namespace lockstep::launcher {

namespace {

using Clock = std::chrono::steady_clock;

const Tensor* first_tensor(std::span<const Value> values) {
  for (const Value& value : values) {
    if (value.is_tensor() && value.tensor().defined()) return &value.tensor();
    if (value.is_tensor_list() && !value.tensors().empty()) return &value.tensors()[0];
  }
  return nullptr;
}

DType dtype_of(Stack& stack) {
  const Tensor* tensor = first_tensor({stack.results().data(), stack.results().size()});
  if (tensor == nullptr) tensor = first_tensor(stack.arguments());
  return tensor != nullptr ? tensor->dtype() : DType::kF32;
}

/// What a row of the table shows, in one step.
struct Row {
  std::string phase;
  std::string name;
  std::string dtype;
  double calls = 0;
  double ms = 0;
  double flops = 0;
  double bytes = 0;
  double limit_ms = 0;

  double loss_ms() const { return std::max(0.0, ms - limit_ms); }
};

Row row_of(const OperatorCost& cost, const profile::MachinePeaks& peaks, int64_t steps) {
  const auto per_step = [&](double total) { return total / static_cast<double>(steps); };
  return {lockstep::name(cost.phase),
          cost.name,
          std::string(lockstep::name(cost.dtype)),
          per_step(static_cast<double>(cost.count.calls)),
          per_step(cost.seconds * 1e3),
          per_step(static_cast<double>(cost.count.flops)),
          per_step(static_cast<double>(cost.count.bytes)),
          per_step(limit_seconds(cost, peaks) * 1e3)};
}

void add_to(Row& sum, const Row& row) {
  sum.calls += row.calls;
  sum.ms += row.ms;
  sum.flops += row.flops;
  sum.bytes += row.bytes;
  sum.limit_ms += row.limit_ms;
}

std::string line_of(const Row& row, double step_ms) {
  const auto rate = [&](double amount) {
    return amount > 0 && row.ms > 0 ? fmt::format("{:.1f}", amount / row.ms / 1e6)
                                    : std::string("-");
  };
  return fmt::format(
      "{:<9} {:<46} {:<8} {:>7.0f} {:>9.3f} {:>5.1f}% {:>8} {:>7} {:>9.3f} {:>9.3f}\n", row.phase,
      row.name, row.dtype, row.calls, row.ms, 100 * row.ms / step_ms, rate(row.flops),
      rate(row.bytes), row.limit_ms, row.loss_ms());
}

}  // namespace

void OperatorProfile::call(const Operator& op, KeySet keys, Stack& stack) {
  const Clock::time_point start = Clock::now();
  pass_on(op, keys, stack);
  if (device_.type != DeviceType::kCPU) current_stream(device_).synchronize();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const Phase phase = current_phase();
  const DType dtype = dtype_of(stack);
  OperatorCost& cost = costs_[{phase, op.name(), dtype}];
  cost.phase = phase;
  cost.name = op.name();
  cost.dtype = dtype;
  cost.count += count_call(op, stack);
  cost.seconds += seconds;
}

std::vector<OperatorCost> OperatorProfile::costs() const {
  std::vector<OperatorCost> all;
  for (const auto& [key, cost] : costs_) all.push_back(cost);
  std::ranges::stable_sort(all, std::ranges::greater(), &OperatorCost::seconds);
  return all;
}

double limit_seconds(const OperatorCost& cost, const profile::MachinePeaks& peaks) {
  const double arithmetic = static_cast<double>(cost.count.flops) / peaks.flops(cost.dtype);
  const double memory = static_cast<double>(cost.count.bytes) / peaks.bytes_per_second;
  return std::max(arithmetic, memory);
}

std::string profile_table(const std::vector<OperatorCost>& costs,
                          const profile::MachinePeaks& peaks, int64_t steps, double step_seconds,
                          double least_share) {
  const double step_ms = step_seconds * 1e3;
  std::string text = fmt::format(
      "limits: {:.0f} GFLOP/s in f32, {:.0f} in bf16, {:.1f} GB/s (measured before the steps)\n"
      "{:<9} {:<46} {:<8} {:>7} {:>9} {:>6} {:>8} {:>7} {:>9} {:>9}\n",
      peaks.f32_flops / 1e9, peaks.bf16_flops / 1e9, peaks.bytes_per_second / 1e9, "phase",
      "operator", "dtype", "calls", "ms", "share", "GFLOP/s", "GB/s", "limit ms", "loss ms");
  Row small{"", "(smaller ones)", ""};
  Row total{"", "total of operators", ""};
  double loss = 0;
  for (const OperatorCost& cost : costs) {
    const Row row = row_of(cost, peaks, steps);
    add_to(total, row);
    loss += row.loss_ms();
    if (row.ms < least_share * step_ms) {
      add_to(small, row);
    } else {
      text += line_of(row, step_ms);
    }
  }
  if (small.calls > 0) text += line_of(small, step_ms);
  Row between{"", "between operators", ""};
  between.ms = std::max(0.0, step_ms - total.ms);
  text += line_of(between, step_ms);
  text += fmt::format(
      "{:<9} {:<46} {:<8} {:>7.0f} {:>9.3f} {:>5.1f}% {:>8} {:>7} {:>9.3f} {:>9.3f}\n", "", "step",
      "", total.calls, step_ms, 100.0, "", "", total.limit_ms, loss + between.ms);
  return text;
}

std::string profile_json(const std::vector<OperatorCost>& costs, const profile::MachinePeaks& peaks,
                         int64_t steps) {
  std::string text;
  for (const OperatorCost& cost : costs) {
    const Row row = row_of(cost, peaks, steps);
    text += JsonLine()
                .add("phase", row.phase)
                .add("operator", row.name)
                .add("dtype", row.dtype)
                .add("calls", row.calls)
                .add("ms", row.ms)
                .add("flops", row.flops)
                .add("bytes", row.bytes)
                .add("limit_ms", row.limit_ms)
                .add("loss_ms", row.loss_ms())
                .text() +
            "\n";
  }
  return text;
}

}  // namespace lockstep::launcher
