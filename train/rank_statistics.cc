#include "train/rank_statistics.h"

#include <algorithm>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"

namespace lockstep::train {

RankStatistics::RankStatistics(nn::Module& model, dist::ProcessGroup* group,
                               std::vector<int64_t> micro_batches)
    : model_(model),
      group_(group != nullptr && group->size() > 1 ? group : nullptr),
      micro_batches_(std::move(micro_batches)) {
  LS_ASSERT(group_ == nullptr || micro_batches_.size() == static_cast<size_t>(group_->size()));
}

void RankStatistics::learn_layout(const nn::StatisticsLog& log) {
  std::vector<Tensor> momentum, rest;
  for (const nn::StatisticsLog::Move& move : log.moves()) {
    const bool twice = std::ranges::any_of(
        running_, [&](const Tensor& other) { return other.is_same(move.running); });
    LS_CHECK(!twice, ConfigError,
             "[train] a module with running statistics is called twice in one forward pass: over "
             "ranks expected each to be called once. Give each call a module of its own, or train "
             "on one rank.");
    running_.push_back(move.running);
    const TensorOptions options{DType::kF64, move.running.device()};
    momentum.push_back(full(move.running.sizes(), move.momentum, options));
    rest.push_back(full(move.running.sizes(), 1 - move.momentum, options));
  }
  counters_ = log.counters();
  momentum_ = cat(momentum);
  rest_ = cat(rest);
}

void RankStatistics::add(const nn::StatisticsLog& log) {
  if (log.moves().empty() && running_.empty()) return;
  const NoGradGuard no_grad;
  if (running_.empty()) learn_layout(log);
  const auto is_same = [](const nn::StatisticsLog::Move& move, const Tensor& running) {
    return move.running.is_same(running);
  };
  LS_CHECK(std::ranges::equal(log.moves(), running_, is_same), ConfigError,
           "[train] a forward pass moves other running statistics than the one before: over ranks "
           "expected the same in all. Train on one rank.");
  std::vector<Tensor> found;
  for (const nn::StatisticsLog::Move& move : log.moves()) found.push_back(move.found);
  rows_.push_back(cat(found));
}

void RankStatistics::send() {
  if (rows_.empty()) return;
  const NoGradGuard no_grad;
  // Gathers rather than sums with zeros, so that no bit changes. Ranks with fewer micro-batches
  // than others send padding rows, which are not read.
  const int64_t most = *std::ranges::max_element(micro_batches_);
  const int64_t width = momentum_.numel();
  const TensorOptions options{DType::kF64, momentum_.device()};
  LS_ASSERT(std::cmp_equal(rows_.size(), micro_batches_[static_cast<size_t>(group_->rank())]));
  const Tensor mine = zeros({most, width}, options);
  for (size_t i = 0; i < rows_.size(); ++i) {
    mine.select(0, static_cast<int64_t>(i)).copy_(rows_[i]);
  }
  rows_.clear();
  of_all_ = empty({group_->size(), most, width}, options);
  work_ = group_->all_gather(of_all_, mine);
}

void RankStatistics::apply() {
  if (!of_all_.defined()) return;
  const NoGradGuard no_grad;
  std::exchange(work_, {}).wait();
  const Tensor moves = std::exchange(of_all_, {}) * momentum_;
  // As the batch norm kernel does: in f64, rounded to f32 after each micro-batch.
  Tensor state = cat(running_);
  int64_t count = 0;
  for (size_t rank = 0; rank < micro_batches_.size(); ++rank) {
    const Tensor rows = moves.select(0, static_cast<int64_t>(rank));
    for (int64_t i = 0; i < micro_batches_[rank]; ++i) {
      state = (state.to(DType::kF64) * rest_ + rows.select(0, i)).to(DType::kF32);
    }
    count += micro_batches_[rank];
  }
  int64_t start = 0;
  for (const Tensor& running : running_) {
    running.copy_(state.slice(0, start, start + running.numel()));
    start += running.numel();
  }
  for (const Tensor& counter : counters_) add_(counter, count);
}

}  // namespace lockstep::train
