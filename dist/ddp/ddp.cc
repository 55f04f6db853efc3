#include "dist/ddp/ddp.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/base/hash_words.h"
#include "dist/group/agreement.h"

namespace lockstep::dist {

namespace {

/// Returns one line for each tensor, with a hash of its bytes.
std::string values_of(const std::vector<NamedTensor>& list) {
  std::string text;
  for (const NamedTensor& each : list) {
    const Tensor here = each.tensor.detach().to(kCPU).contiguous();
    std::vector<uint64_t> words(here.nbytes() / sizeof(uint64_t) + 1);
    std::memcpy(words.data(), here.data(), here.nbytes());
    text += fmt::format("{} {} {} with hash {:016x}\n", each.name, to_string(here.dtype()),
                        here.shape(), hash_words(words));
  }
  return text;
}

void broadcast(ProcessGroup& group, const std::vector<NamedTensor>& list, int root) {
  std::vector<Tensor> tensors;
  for (const NamedTensor& each : list) tensors.push_back(each.tensor);
  broadcast_values(group, tensors, root);
}

/// Throws AutogradError if the lists differ. `what` is "parameter" or "buffer", `effect` the
/// consequence for a tensor that was added.
void check_same(const std::vector<NamedTensor>& wrapped, const std::vector<NamedTensor>& now,
                const char* what, const char* effect) {
  for (size_t i = 0; i < now.size(); ++i) {
    LS_CHECK(i < wrapped.size() && now[i].tensor.is_same(wrapped[i].tensor), AutogradError,
             "[ddp] {} {} was not there, or another tensor, when the module was wrapped: {}. Wrap "
             "the module again after changing it.",
             what, now[i].name, effect);
  }
  LS_CHECK(now.size() == wrapped.size(), AutogradError,
           "[ddp] {} {} has gone since the module was wrapped. Wrap the module again after "
           "changing it.",
           what, wrapped[now.size()].name);
}

bool averages_over_present(const DdpOptions& options) {
  return options.average && options.uneven_inputs &&
         options.average_over == AverageOver::kPresentRanks;
}

/// Whether reducing gradients that are already equal on all present ranks leaves them unchanged.
bool keeps_results(const DdpOptions& options) {
  return options.average && (!options.uneven_inputs || averages_over_present(options));
}

ReducerOptions reducer_options(const DdpOptions& options,
                               const std::vector<NamedTensor>& parameters) {
  ReducerOptions sums;
  const DeviceType device =
      parameters.empty() ? DeviceType::kCPU : parameters.front().tensor.device().type;
  // A rank in join() would not take part in the collective choice of sizes.
  sums.buckets = options.uneven_inputs ? or_usual(options.buckets, device) : options.buckets;
  sums.average_over_present = averages_over_present(options);
  sums.average = options.average && !sums.average_over_present;
  sums.find_unused_parameters = options.find_unused_parameters;
  sums.communication_hook = options.communication_hook;
  sums.static_graph = options.static_graph;
  return sums;
}

}  // namespace

Ddp::Ddp(List parameters, List buffers, ProcessGroup& group, const DdpOptions& options)
    : list_parameters_(std::move(parameters)),
      list_buffers_(std::move(buffers)),
      parameters_(list_parameters_()),
      buffers_(list_buffers_()),
      group_(group),
      options_(options),
      // The constructor compares names and shapes, so that share_values() sends to tensors that
      // fit.
      reducer_(
          std::make_unique<Reducer>(parameters_, &group_, reducer_options(options, parameters_))),
      attendance_(group) {
  share_values();
  for (const NamedTensor& each : parameters_) {
    // A prehook runs before the reducer's post-accumulate hook, which may send a bucket.
    hooks_.push_back(register_prehook(*gradient_edge(each.tensor).node,
                                      [this](std::span<Tensor>) { gradient_comes(); }));
  }
  discard_grad();
}

Ddp::~Ddp() {
  for (HookHandle& hook : hooks_) hook.remove();
}

void Ddp::share_values() const {
  if (options_.broadcast_parameters) {
    require_same(group_, "ddp", "list of buffers", description(buffers_));
    broadcast(group_, parameters_, 0);
    broadcast(group_, buffers_, 0);
  } else {
    require_same(group_, "ddp", "model's values", values_of(parameters_) + values_of(buffers_));
  }
}

// --- steps ---------------------------------------------------------------------------------------

void Ddp::zero_grad() {
  LS_CHECK(not_summed_ == 0 || is_unfinished(), AutogradError,
           "[ddp] zero_grad: expected gradients that are summed over the ranks, got those of {} "
           "backward(s) under no_sync(). Run the last backward of a step without it, or call "
           "discard_grad() where they are to be lost.",
           not_summed_);
  discard_grad();
}

void Ddp::discard_grad() {
  const MutexLock lock(mutex_);
  LS_CHECK(running_.expired(), AutogradError,
           "[ddp] zero_grad: expected a call between backwards, got one inside of one.");
  reducer_->begin_step();
  reducer_->begin_leaf();
  not_summed_ = 0;
  summed_ = unfinished_ = false;
}

const std::vector<Tensor>& Ddp::gradients() const {
  const bool has_failed = is_unfinished();
  LS_CHECK(summed_ && not_summed_ == 0 && !has_failed, AutogradError,
           "[ddp] gradients: expected a backward that was synchronised{}. They are those of this "
           "rank alone, or of an earlier step.",
           has_failed        ? ", got one that failed"
           : not_summed_ > 0 ? fmt::format(", got {} under no_sync() after it", not_summed_)
                             : ", got none since zero_grad()");
  return reducer_->gradients();
}

/// Called for each gradient; the first of a backward queues `finish` for the end of that backward.
void Ddp::gradient_comes() {
  const MutexLock lock(mutex_);
  if (!running_.expired()) return;
  LS_CHECK(
      !unfinished_, AutogradError,
      "[ddp] the backward before this one failed: expected zero_grad() after it. Its gradients "
      "are not complete.");
  const auto has_gradient = [](const NamedTensor& each) { return each.tensor.grad().defined(); };
  LS_CHECK(!summed_ || keeps_results(options_) || std::ranges::none_of(parameters_, has_gradient),
           AutogradError,
           "[ddp] this backward would add to sums over the ranks, which would be summed again: "
           "expected zero_grad() after each step. Only an average over the ranks that are present "
           "can be added to.");
  const bool synchronised = no_sync_ == 0;
  const auto running = std::make_shared<const bool>(synchronised);
  queue_final_callback([this, running] { finish(*running); });
  running_ = running;
  unfinished_ = true;
  reducer_->expect_last_backward(synchronised);
  if (synchronised && options_.uneven_inputs) attendance_.call(true, reducer_->in_learnt_order());
}

void Ddp::finish(bool synchronised) {
  if (synchronised) {
    check_same(parameters_, list_parameters_(), "parameter",
               "its gradient is that of this rank alone");
    check_same(buffers_, list_buffers_(), "buffer", "its values are those of this rank alone");
    if (options_.uneven_inputs) present_ = attendance_.wait();
    reducer_->finish(present_);
    share_buffers();
    reducer_->go_on();
  }
  summed_ = summed_ || synchronised;
  not_summed_ = synchronised ? 0 : not_summed_ + 1;
  const MutexLock lock(mutex_);
  unfinished_ = false;
}

void Ddp::share_buffers() const {
  if (options_.broadcast_buffers) broadcast(group_, buffers_, present_.lowest);
}

// --- ranks without samples -----------------------------------------------------------------------

int Ddp::join() {
  LS_CHECK(options_.uneven_inputs, DistError,
           "[ddp] join: expected DdpOptions::uneven_inputs, without which the others do not ask "
           "who has samples. Set it on all ranks.");
  LS_CHECK(no_sync_ == 0, AutogradError, "[ddp] join: expected a call outside of no_sync().");
  zero_grad();
  for (;;) {
    attendance_.call(false, false);
    const Present present = attendance_.wait();
    if (present.ranks == 0) break;
    present_ = present;
    reducer_->answer(present);
    share_buffers();
  }
  broadcast(group_, parameters_, present_.lowest);
  broadcast(group_, buffers_, present_.lowest);
  discard_grad();
  return present_.lowest;
}

}  // namespace lockstep::dist
