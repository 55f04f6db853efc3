#include "dist/ddp.h"

#include <cstring>
#include <utility>

#include "core/check.h"
#include "dist/agreement.h"
#include "dist/hash_words.h"

namespace lockstep::dist {

namespace {

/// One line for each tensor, with a hash of its bytes.
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

void broadcast(ProcessGroup& group, const std::vector<NamedTensor>& list) {
  for (const NamedTensor& each : list) broadcast_values(group, each.tensor);
}

}  // namespace

Ddp::Ddp(std::function<std::vector<NamedTensor>()> parameters, std::vector<NamedTensor> buffers,
         ProcessGroup& group, const DdpOptions& options)
    : list_parameters_(std::move(parameters)),
      parameters_(list_parameters_()),
      buffers_(std::move(buffers)),
      group_(group),
      broadcasts_buffers_(options.broadcast_buffers) {
  ReducerOptions sums;
  sums.buckets = options.buckets;
  sums.average = options.average;
  sums.find_unused_parameters = options.find_unused_parameters;
  // Checks names and shapes first: values are sent to tensors that fit.
  reducer_ = std::make_unique<Reducer>(parameters_, &group_, sums);
  share_values(options);
  // The reducer's hooks were added first, so that they have run when these do.
  for (const NamedTensor& each : parameters_) {
    hooks_.push_back(register_post_accumulate_grad_hook(
        each.tensor, [this](const Tensor&) { gradient_arrived(); }));
  }
  zero_grad();
}

Ddp::~Ddp() {
  for (HookHandle& hook : hooks_) hook.remove();
}

void Ddp::share_values(const DdpOptions& options) {
  if (options.broadcast_parameters) {
    broadcast(group_, parameters_);
    broadcast(group_, buffers_);
  } else {
    require_same(group_, "ddp", "model's values", values_of(parameters_) + values_of(buffers_));
  }
}

void Ddp::zero_grad() {
  in_backward_ = false;
  reducer_->begin_step();
  reducer_->begin_leaf();
  reducer_->expect_last_backward(no_sync_ == 0);
}

void Ddp::change_no_sync(int by) {
  no_sync_ += by;
  reducer_->expect_last_backward(no_sync_ == 0);
}

/// With the first gradient of a backward, its end is awaited.
void Ddp::gradient_arrived() {
  if (no_sync_ > 0 || in_backward_.exchange(true)) return;
  queue_final_callback([this] { finish(); });
}

void Ddp::finish() {
  in_backward_ = false;
  check_parameters();
  reducer_->finish();
  if (broadcasts_buffers_) broadcast(group_, buffers_);
  reducer_->go_on();
  reducer_->expect_last_backward();
}

void Ddp::check_parameters() const {
  const std::vector<NamedTensor> now = list_parameters_();
  for (size_t i = 0; i < now.size(); ++i) {
    LS_CHECK(i < parameters_.size() && now[i].tensor.is_same(parameters_[i].tensor), AutogradError,
             "[ddp] parameter {} was not there, or another tensor, when the module was wrapped: "
             "its gradient is that of this rank alone. Wrap the module again after changing it.",
             now[i].name);
  }
  LS_CHECK(now.size() == parameters_.size(), AutogradError,
           "[ddp] parameter {} has gone since the module was wrapped. Wrap the module again after "
           "changing it.",
           parameters_[now.size()].name);
}

}  // namespace lockstep::dist
