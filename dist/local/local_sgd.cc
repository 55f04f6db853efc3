#include "dist/local/local_sgd.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "dist/collectives/operation_label.h"
#include "dist/local/block_codes.h"
#include "dist/local/fragments.h"
#include "dist/rendezvous/rank_list.h"

namespace lockstep::dist {

namespace {

LocalSgdOptions checked(const LocalSgdOptions& options) {
  const auto check = [](bool is_good, const char* field, const char* expected, auto got) {
    LS_CHECK(is_good, DistError, "[local_sgd] {}: expected {}, got {}.", field, expected, got);
  };
  check(options.inner_steps >= 1, "inner_steps", "at least 1", options.inner_steps);
  check(options.fragments >= 1 && options.fragments <= options.inner_steps, "fragments",
        "1 to inner_steps", options.fragments);
  check(options.delay_steps >= 0 && options.delay_steps < options.inner_steps, "delay_steps",
        "0 to less than inner_steps", options.delay_steps);
  check(options.bits == 4 || options.bits == 8 || options.bits == 32, "bits", "4, 8 or 32",
        options.bits);
  check(options.learning_rate > 0 && std::isfinite(options.learning_rate), "learning_rate",
        "a number above 0", options.learning_rate);
  check(options.momentum >= 0 && options.momentum < 1, "momentum", "0 to below 1",
        options.momentum);
  return options;
}

}  // namespace

LocalSgd::LocalSgd(std::vector<NamedTensor> parameters, ProcessGroup& group,
                   const LocalSgdOptions& options)
    : parameters_(std::move(parameters)), options_(checked(options)) {
  for (const NamedTensor& each : parameters_) {
    LS_CHECK(each.tensor.dtype() == DType::kF32, DTypeError,
             "[local_sgd] parameter {}: expected float32, got {}.", each.name,
             name(each.tensor.dtype()));
  }
  const NoGradGuard no_grad;
  // Averages that are on the way would hold up the group's other operations.
  group_ = group.subgroup(every_rank(group.size()), group.name() + ".local_sgd");
  fragments_ = divided();
  globals_ = by_parameter(&Fragment::global);
  begin_anew();
}

LocalSgd::~LocalSgd() = default;

std::vector<int64_t> LocalSgd::elements_of(size_t first, size_t end) const {
  std::vector<int64_t> elements;
  for (size_t i = first; i < end; ++i) elements.push_back(parameters_[i].tensor.numel());
  return elements;
}

std::vector<LocalSgd::Fragment> LocalSgd::divided() const {
  std::vector<Fragment> fragments;
  size_t first = 0;
  for (const size_t end : fragment_ends(elements_of(0, parameters_.size()), options_.fragments)) {
    fragments.push_back(make_fragment(first, end));
    fragments.back().number = fragments.size();
    first = end;
  }
  return fragments;
}

LocalSgd::Fragment LocalSgd::make_fragment(size_t first, size_t end) const {
  Fragment fragment;
  fragment.first = first;
  fragment.end = end;
  int64_t blocks = 0;
  for (size_t i = first; i < end; ++i) {
    fragment.offsets.push_back(blocks * kCodedBlock);
    blocks += coded_blocks(parameters_[i].tensor.numel());
  }
  fragment.owned = owned_elements(elements_of(first, end), group_->size());
  const TensorOptions options{DType::kF32, parameters_[first].tensor.device()};
  const auto arena = [&] { return zeros({elements(fragment)}, options); };
  fragment.global = arena();
  fragment.momentum = arena();
  if (options_.delay_steps > 0) {
    fragment.difference = arena();
    fragment.mean = arena();
  }
  if (has_codes()) {
    fragment.error = arena();
    fragment.mean_error = zeros({fragment.owned}, options);
  }
  return fragment;
}

Tensor LocalSgd::part(const Fragment& fragment, const Tensor& arena, size_t number) const {
  const Tensor& parameter = parameters_[number].tensor;
  const int64_t first = fragment.offsets[number - fragment.first];
  return arena.slice(0, first, first + parameter.numel()).view(parameter.sizes());
}

std::vector<Tensor> LocalSgd::by_parameter(Tensor Fragment::*arena) const {
  std::vector<Tensor> parts;
  for (const Fragment& each : fragments_) {
    for (size_t i = each.first; i < each.end; ++i) parts.push_back(part(each, each.*arena, i));
  }
  return parts;
}

int64_t LocalSgd::since(size_t fragment, int64_t steps) const {
  return steps_since_average(static_cast<int64_t>(fragment), std::ssize(fragments_),
                             options_.inner_steps, steps);
}

void LocalSgd::after_update(int64_t steps) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    Fragment& fragment = fragments_[i];
    const int64_t passed = since(i, steps);
    if (passed == 0) send(fragment);
    // Half of the delay for each of the two messages.
    if (passed >= options_.delay_steps / 2) gather(fragment);
    if (passed >= options_.delay_steps) use(fragment, /*is_last=*/false);
  }
}

void LocalSgd::finish(int64_t steps) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    Fragment& fragment = fragments_[i];
    use(fragment, /*is_last=*/false);
    if (since(i, steps) == 0 && options_.delay_steps == 0) continue;  // just averaged
    send(fragment);
    use(fragment, /*is_last=*/true);
  }
}

void LocalSgd::send(Fragment& fragment) {
  LS_ASSERT(fragment.progress == Progress::kNone);
  const OperationLabel label = OperationLabel::fragment(fragment.number);
  if (options_.delay_steps == 0) {
    // What is no parameter's stays 0.
    fragment.difference = zeros_like(fragment.global);
    fragment.mean = empty_like(fragment.global);
  }
  for (size_t i = fragment.first; i < fragment.end; ++i) {
    const Tensor difference = part(fragment, fragment.difference, i);
    difference.copy_(parameters_[i].tensor);
    difference.sub_(globals_[i]);
  }
  fragment.progress = Progress::kSent;
  if (!has_codes()) {
    fragment.mean.copy_(fragment.difference);
    fragment.work = group_->all_reduce(fragment.mean, sum_of_ranks(group_->size(), true));
    return;
  }
  const Tensor outgoing = fragment.difference + fragment.error;
  const Tensor codes = encode_blocks(outgoing, options_.bits);
  fragment.error.copy_(outgoing);
  fragment.error.sub_(decode_blocks(codes, options_.bits));
  fragment.received = empty_like(codes);
  fragment.work = group_->all_to_all(fragment.received, codes);
}

/// The rank's part of the mean is known when all ranks' codes of it have come.
void LocalSgd::gather(Fragment& fragment) {
  if (fragment.progress != Progress::kSent) return;
  const OperationLabel label = OperationLabel::fragment(fragment.number);
  fragment.progress = Progress::kGathered;
  if (!has_codes()) return;
  wait(fragment.work);
  const int64_t ranks = group_->size();
  const int64_t rows = fragment.received.size(0) / ranks;
  Tensor mean = decode_blocks(fragment.received.slice(0, 0, rows), options_.bits);
  for (int64_t rank = 1; rank < ranks; ++rank) {
    mean.add_(
        decode_blocks(fragment.received.slice(0, rank * rows, (rank + 1) * rows), options_.bits));
  }
  mean = mean / static_cast<double>(ranks) + fragment.mean_error;
  const Tensor codes = encode_blocks(mean, options_.bits);
  fragment.mean_error.copy_(mean);
  fragment.mean_error.sub_(decode_blocks(codes, options_.bits));
  fragment.received = empty_like(fragment.received);
  fragment.work = group_->all_gather(fragment.received, codes);
}

void LocalSgd::arrive(Fragment& fragment) {
  gather(fragment);
  if (fragment.progress != Progress::kGathered) return;
  wait(fragment.work);
  if (has_codes()) fragment.mean.copy_(decode_blocks(fragment.received, options_.bits));
  fragment.received = Tensor();
  fragment.progress = Progress::kThere;
}

void LocalSgd::use(Fragment& fragment, bool is_last) {
  arrive(fragment);
  if (fragment.progress != Progress::kThere) return;
  fragment.progress = Progress::kNone;
  Tensor change = fragment.mean;
  if (!is_last) {
    mul_(fragment.momentum, options_.momentum);
    fragment.momentum.add_(fragment.mean);
    change = (fragment.mean + fragment.momentum * options_.momentum) * options_.learning_rate;
  }
  fragment.global.add_(change);
  const bool goes_on = options_.delay_steps > 0 && !is_last;
  if (goes_on) change = change - fragment.difference;
  for (size_t i = fragment.first; i < fragment.end; ++i) {
    const Tensor& parameter = parameters_[i].tensor;
    if (goes_on) {
      parameter.add_(part(fragment, change, i));
    } else {
      parameter.copy_(globals_[i]);
    }
  }
  if (options_.delay_steps == 0) fragment.difference = fragment.mean = Tensor();
}

void LocalSgd::wait(Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work.wait();
  work = {};
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double LocalSgd::take_wait() { return std::exchange(waited_, 0); }

void LocalSgd::begin_anew() {
  const NoGradGuard no_grad;
  settle();
  for (Fragment& each : fragments_) {
    each.progress = Progress::kNone;
    each.momentum.zero_();
    if (each.error.defined()) each.error.zero_();
    if (each.mean_error.defined()) each.mean_error.zero_();
  }
  for (size_t i = 0; i < parameters_.size(); ++i) globals_[i].copy_(parameters_[i].tensor);
}

void LocalSgd::exchange() {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor kept = parameters_[i].tensor.clone();
    parameters_[i].tensor.copy_(globals_[i]);
    globals_[i].copy_(kept);
  }
}

void LocalSgd::settle() {
  const NoGradGuard no_grad;
  for (Fragment& each : fragments_) arrive(each);
}

void LocalSgd::restore(int64_t steps) {
  for (size_t i = 0; i < fragments_.size(); ++i) {
    const int64_t passed = since(i, steps);
    const bool is_under_way = passed < options_.delay_steps && steps > passed;
    fragments_[i].progress = is_under_way ? Progress::kThere : Progress::kNone;
  }
}

std::vector<LocalSgd::State> LocalSgd::state() const {
  std::vector<State> state;
  state.push_back({"outer_momentum", State::Of::kAll, by_parameter(&Fragment::momentum)});
  if (options_.delay_steps > 0) {
    state.push_back({"outer_mean", State::Of::kAll, by_parameter(&Fragment::mean)});
    state.push_back({"difference", State::Of::kRank, by_parameter(&Fragment::difference)});
  }
  if (!has_codes()) return state;
  state.push_back({"error", State::Of::kRank, by_parameter(&Fragment::error)});
  // Each rank has its part of the arena; the rest is another's.
  State part{"outer_error", State::Of::kPart, {}};
  for (const Fragment& each : fragments_) {
    for (size_t i = each.first; i < each.end; ++i) {
      const Part own = part_of(i, group_->rank());
      part.tensors.push_back(
          each.mean_error.slice(0, own.offset, own.offset + own.end - own.first));
    }
  }
  state.push_back(std::move(part));
  return state;
}

LocalSgd::Part LocalSgd::part_of(size_t parameter, int rank) const {
  const auto fragment =
      std::ranges::find_if(fragments_, [&](const Fragment& each) { return parameter < each.end; });
  const int64_t offset = fragment->offsets[parameter - fragment->first];
  const int64_t begin = fragment->owned * rank;
  const int64_t first = std::max(offset, begin);
  const int64_t end =
      std::min(offset + parameters_[parameter].tensor.numel(), begin + fragment->owned);
  if (first >= end) return {};
  return {.first = first - offset, .end = end - offset, .offset = first - begin};
}

int64_t LocalSgd::state_bytes() const {
  int64_t bytes = 0;
  for (const Fragment& each : fragments_) {
    int64_t kept = 2 * elements(each);
    if (options_.delay_steps > 0) kept += 2 * elements(each);
    if (has_codes()) kept += elements(each) + each.owned;
    bytes += kept * static_cast<int64_t>(size_of(DType::kF32));
  }
  return bytes;
}

}  // namespace lockstep::dist
