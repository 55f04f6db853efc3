#include "dist/fsdp/unit_gradients.h"

#include <numeric>
#include <utility>

#include "autograd/accumulate_grad.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/pinned.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "dist/collectives/leaf_tree.h"
#include "dist/collectives/operation_label.h"
#include "dist/ddp/gradient_arena.h"

namespace lockstep::dist {

namespace {

/// The first rank of this rank's group of shards.
int first_of(const SumGroups& groups) { return groups.all->rank() - groups.shards->rank(); }

}  // namespace

UnitGradients::UnitGradients(std::string unit, std::vector<NamedTensor> parameters,
                             const ShardLayout& layout, const GradientSumOptions& options)
    : unit_(std::move(unit)),
      parameters_(std::move(parameters)),
      layout_(layout),
      options_(options) {
  for (const NamedTensor& each : parameters_) {
    trained_.push_back(each.tensor.requires_grad());
    trained_count_ += trained_.back() ? 1 : 0;
  }
  if (trained_count_ == 0) return;
  const Tensor& first = parameters_.front().tensor;
  dtype_ = first.dtype();
  device_ = first.device();
  if (options_.host_copies) {
    host_sums_ = empty_pinned({layout_.shard_elements()}, dtype_, device_);
    host_sums_.zero_();
  } else {
    sums_ = zeros({layout_.shard_elements()}, {dtype_, device_});
  }
}

UnitGradients::~UnitGradients() { drop_places(); }

void UnitGradients::begin_step() {
  drop_places();
  give_back(std::exchange(arena_, {}));
  replica_sums_.reset();
  has_sums_ = false;
  row_ = 0;
}

void UnitGradients::forget() {
  for (const Pending& each : std::exchange(pending_, {})) {
    give_back(each.sent);
    give_back(each.more);
  }
  subtrees_ = sent_sums_ = {};
  begin_step();
}

void UnitGradients::begin_leaf(int64_t row) {
  row_ = row;
  needs_places_ = true;
}

Tensor UnitGradients::take_registered(int64_t elements, DType dtype) {
  return options_.arenas == nullptr ? Tensor() : options_.arenas->take(elements, dtype);
}

void UnitGradients::give_back(const Tensor& memory) {
  if (options_.arenas != nullptr) options_.arenas->give_back(memory);
}

void UnitGradients::place() {
  const NoGradGuard no_grad;
  if (!arena_.defined()) {
    // With a send_dtype a copy of it is sent.
    if (!options_.send_dtype) arena_ = take_registered(layout_.elements(), dtype_);
    arena_ = arena_.defined() ? arena_.view({1, layout_.elements()})
                              : empty({options_.rows, layout_.elements()}, {dtype_, device_});
    for (const ShardLayout::Gap& gap : layout_.gaps()) {
      slice(arena_, 1, gap.first, gap.end).zero_();
    }
  }
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i].tensor;
    const int64_t first = row_ * layout_.elements() + layout_.offset(i);
    if (!trained_[i]) {
      slice(select(arena_, 0, row_), 0, layout_.offset(i), layout_.offset(i) + parameter.numel())
          .zero_();
      continue;
    }
    parameter.set_grad({});
    set_grad_destination(parameter, window_like(arena_, first, parameter));
  }
  needs_places_ = false;
}

void UnitGradients::drop_places() {
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i].tensor;
    if (!trained_[i] || !parameter.requires_grad()) continue;
    parameter.set_grad({});
    set_grad_destination(parameter, {});
  }
  needs_places_ = true;
}

void UnitGradients::prepare() {
  if (trained_count_ > 0 && needs_places_) place();
}

void UnitGradients::prepare_zeros() {
  const NoGradGuard no_grad;
  prepare();
  arena_.zero_();
}

void UnitGradients::begin_backward() {
  prepare();
  missing_ = trained_count_;
}

bool UnitGradients::arrived(uint32_t index) {
  LS_CHECK(
      missing_ > 0, AutogradError,
      "[backward] parameter {} received another gradient after its unit was complete: expected "
      "one in each backward. A backward inside a backward is not supported with fully_shard.",
      parameters_[index].name);
  return --missing_ == 0;
}

uint32_t UnitGradients::first_missing() const {
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    if (trained_[i] && !parameters_[i].tensor.grad().defined()) return i;
  }
  return static_cast<uint32_t>(parameters_.size());
}

int64_t UnitGradients::bytes() const {
  return layout_.elements() * static_cast<int64_t>(size_of(dtype_));
}

void UnitGradients::deal_out(const LeafDeal& deal, int64_t rows) {
  LS_ASSERT(pending_.empty());
  options_.deal = deal;
  options_.rows = rows;
}

void UnitGradients::join(int64_t row, int64_t joins) {
  const NoGradGuard no_grad;
  for (int64_t each = row; each > row - joins; --each) {
    select(arena_, 0, each - 1).add_(select(arena_, 0, each));
  }
}

/// Sends to each rank of `shards` its part of this rank's `sums`, the rows of its subtrees.
Work UnitGradients::exchange_subtrees(const SumGroups& groups, const Tensor& sums) {
  const int64_t parts = layout_.ranks(), rows = sums.size(0);
  std::vector<int64_t> received;
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    received.push_back(std::ssize(subtrees(options_.deal.of(first_of(groups) + rank))));
  }
  subtrees_ = empty(
      {std::accumulate(received.begin(), received.end(), int64_t{0}), layout_.shard_elements()},
      {dtype_, device_});
  // By part: a copy where there are several subtrees.
  const Tensor by_part = sums.view({rows, parts, layout_.shard_elements()})
                             .transpose(0, 1)
                             .contiguous()
                             .view({parts * rows, layout_.shard_elements()});
  return groups.shards->all_to_all(subtrees_, by_part, received,
                                   std::vector<int64_t>(static_cast<size_t>(parts), rows));
}

/// Sends the arena's only row, in the dtype that is sent.
Work UnitGradients::reduce_scatter(const SumGroups& groups, const Tensor& arena, Pending& next) {
  const Tensor row = select(arena, 0, 0);
  Tensor sent = row;
  if (options_.send_dtype) {
    next.sent = take_registered(layout_.elements(), *options_.send_dtype);
    sent = next.sent.defined() ? next.sent.copy_(row) : row.to(*options_.send_dtype);
  } else if (options_.arenas != nullptr && options_.arenas->has(arena)) {
    next.sent = arena;
  }
  return groups.shards->reduce_scatter(next.more.defined() ? next.more : sums_, sent,
                                       sum_of_ranks(groups.all->size(), options_.average));
}

Work UnitGradients::reduce(const SumGroups& groups, int64_t row, int64_t joins) {
  const NoGradGuard no_grad;
  const OperationLabel label = OperationLabel::unit(unit_);
  drop_places();
  join(row, joins);
  if (!sums_.defined()) sums_ = empty({layout_.shard_elements()}, {dtype_, device_});
  Pending next;
  next.is_first = !has_sums_;
  const DType dtype = options_.send_dtype.value_or(dtype_);
  next.more = take_registered(layout_.shard_elements(), dtype);
  if (!next.more.defined() && (has_sums_ || options_.send_dtype)) {
    next.more = empty(sums_.sizes(), {dtype, device_});
  }
  const Tensor arena = std::exchange(arena_, {});
  const Tensor sums = slice(arena, 0, 0, row + 1 - joins);
  if (options_.deal.is_empty()) {
    next.work = reduce_scatter(groups, arena, next);
  } else if (groups.replicas == nullptr) {
    const Tensor& output = next.more.defined() ? next.more : sums_;
    next.work = groups.shards->tree_reduce_scatter(output, sums, options_.deal);
  } else {
    next.work = exchange_subtrees(groups, sums);
  }
  has_sums_ = true;
  pending_.push_back(next);
  return next.work;
}

void UnitGradients::begin_replica_sums(const SumGroups& groups) {
  if (groups.replicas == nullptr || trained_count_ == 0 || replica_sums_) return;
  const NoGradGuard no_grad;
  const OperationLabel label = OperationLabel::unit(unit_);
  finish_shard_sums();
  if (options_.deal.is_empty()) {
    sent_sums_ = options_.send_dtype ? sums_.to(*options_.send_dtype) : sums_;
    replica_sums_ = groups.replicas->all_reduce(sent_sums_);
    return;
  }
  // What the ranks of `shards` have of the tree, joined as far as its subtrees go.
  LeafStack stack;
  int64_t number = 0;
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    for (const LeafRange& each : subtrees(options_.deal.of(first_of(groups) + rank))) {
      const auto row = std::ssize(stack.sums());
      if (row != number) select(subtrees_, 0, row).copy_(select(subtrees_, 0, number));
      ++number;
      const int joins = stack.push(each);
      for (int64_t upper = row; upper > row - joins; --upper) {
        select(subtrees_, 0, upper - 1).add_(select(subtrees_, 0, upper));
      }
    }
  }
  const Tensor rows = slice(subtrees_, 0, 0, std::ssize(stack.sums()));
  replica_sums_ =
      groups.replicas->tree_all_reduce(sums_, rows, options_.deal.of_groups(groups.shards->size()));
  subtrees_ = {};
}

void UnitGradients::finish() {
  const NoGradGuard no_grad;
  finish_shard_sums();
  if (replica_sums_) {
    replica_sums_->wait();
    if (options_.send_dtype && sent_sums_.defined()) sums_.copy_(sent_sums_);
    sent_sums_ = {};
  }
  if (!host_sums_.defined() || !sums_.defined()) return;
  options_.host_copies->wait_stream(current_stream(device_));
  const StreamGuard on_side(*options_.host_copies);
  copy_(host_sums_, sums_, /*non_blocking=*/true);
  sums_.record_stream(*options_.host_copies);
  sums_ = {};
}

void UnitGradients::finish_shard_sums() {
  const NoGradGuard no_grad;
  for (const Pending& next : std::exchange(pending_, {})) {
    next.work.wait();
    give_back(next.sent);
    if (!next.more.defined()) continue;
    next.is_first ? sums_.copy_(next.more) : sums_.add_(next.more);
    give_back(next.more);
  }
}

}  // namespace lockstep::dist
