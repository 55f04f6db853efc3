#include "train/run/rank_speed.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "train/report/machine.h"

namespace lockstep::train {

namespace {

/// compute_ms, data_ms, exposed_ms, core_ms
constexpr int64_t kParts = 4;

}  // namespace

void RankSpeed::add(const StepResult& step) {
  if (group_ == nullptr) return;
  const double data = std::max(0.0, step.data_wait_ms);
  const double exposed = std::max(0.0, step.exposed_comm_ms);
  sums_.data_ms += data;
  sums_.exposed_ms += exposed;
  // A step that was begun ahead may have waited for its batch before.
  sums_.compute_ms += std::max(0.0, step.seconds * 1e3 - data - exposed);
  // From the first step on: what the thread waited for before is not of steps.
  if (steps_++ == 0 && !core_seconds_) core_seconds_ = core_wait_seconds();
}

void RankSpeed::exchange() {
  if (group_ == nullptr || steps_ == 0) return;
  const std::optional<double> core = core_wait_seconds();
  const auto mean = [&](double sum) { return sum / static_cast<double>(steps_); };
  const double core_ms = core && core_seconds_ ? mean(1e3 * (*core - *core_seconds_)) : -1;
  const Tensor own = tensor(std::vector<double>{mean(sums_.compute_ms), mean(sums_.data_ms),
                                                mean(sums_.exposed_ms), core_ms});
  core_seconds_ = core;
  sums_ = {};
  steps_under_way_ = std::exchange(steps_, 0);
  of_all_ = empty({group_->size(), kParts}, DType::kF64);
  work_ = group_->all_gather(of_all_, own);
}

void RankSpeed::restart() {
  if (group_ == nullptr) return;
  core_seconds_ = core_wait_seconds();
  sums_ = {};
  steps_ = 0;
  of_all_ = {};
  work_ = {};
}

std::optional<RankComparison> RankSpeed::take() {
  if (!of_all_.defined() || !work_.is_completed()) return std::nullopt;
  const Tensor values = std::exchange(of_all_, {});
  try {
    std::exchange(work_, {}).wait();
  } catch (const std::exception&) {
    return std::nullopt;
  }
  RankComparison comparison{.steps = steps_under_way_, .ranks = {}};
  const auto* row = values.data<double>();
  for (int rank = 0; rank < group_->size(); ++rank, row += kParts) {
    comparison.ranks.push_back({.rank = rank,
                                .compute_ms = row[0],
                                .data_ms = row[1],
                                .exposed_ms = row[2],
                                .core_ms = row[3]});
  }
  return comparison;
}

}  // namespace lockstep::train
