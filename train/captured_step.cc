#include "train/captured_step.h"

#include <algorithm>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/dispatch/mode.h"
#include "core/memory/caching_allocator.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/pinned.h"
#include "core/ops/view/view.h"

namespace lockstep::train {

namespace {

/// Whether somebody looks at the operators that this thread calls: a replay calls none.
bool is_looked_at() {
  const ActiveModes modes = active_modes();
  return modes.function != nullptr || modes.dispatch != nullptr;
}

}  // namespace

CapturedStep::CapturedStep(Device device, std::vector<Tensor> weights, std::vector<Tensor> buffers,
                           std::string refusal, std::string update_refusal)
    : device_(device),
      weights_(std::move(weights)),
      buffers_(std::move(buffers)),
      refusal_(std::move(refusal)),
      update_refusal_(std::move(update_refusal)) {}

CapturedStep::~CapturedStep() = default;

std::vector<const void*> CapturedStep::places() const {
  std::vector<const void*> places;
  places.reserve(2 * weights_.size() + buffers_.size());
  for (const Tensor& weight : weights_) {
    const Tensor cast = kept_cast(weight);
    places.push_back(weight.data());
    places.push_back(cast.defined() ? cast.data() : nullptr);
  }
  for (const Tensor& buffer : buffers_) places.push_back(buffer.data());
  return places;
}

bool CapturedStep::is_due() {
  if (has_passes() && places() != places_) drop();
  return is_agreed_ && refusal_.empty();
}

void CapturedStep::put(size_t number, const std::vector<Tensor>& samples) {
  const NoGradGuard no_grad;
  if (samples_.size() <= number) samples_.resize(number + 1);
  std::vector<Tensor>& places = samples_[number];
  for (size_t i = 0; i < samples.size(); ++i) {
    if (places.size() <= i) places.push_back(empty_like(samples[i]));
    copy_(places[i], samples[i]);
  }
}

std::unique_ptr<CudaGraph> CapturedStep::captured(const std::function<void()>& work,
                                                  std::string& refusal) {
  auto graph = std::make_unique<CudaGraph>(device_);
  try {
    graph->capture(work);
  } catch (const Error& error) {
    refusal = error.what();
    return nullptr;
  }
  return graph;
}

void CapturedStep::capture_passes(const std::function<Tensor()>& passes) {
  // The graph has memory of its own: what earlier steps left is better the driver's again.
  caching_allocator(device_).empty_cache();
  places_ = places();
  std::string why;
  passes_ = captured([&] { losses_ = passes(); }, why);
  if (passes_ == nullptr) refuse(std::move(why));
}

Tensor CapturedStep::replay_passes() {
  passes_->replay();
  for (const Tensor& buffer : buffers_) buffer.storage()->bump_version();
  return losses_;
}

void CapturedStep::ran(bool settled) {
  ++warm_ups_;
  settled_ = settled;
}

bool CapturedStep::vote() const {
  if (!refusal_.empty() || is_looked_at()) return false;
  return has_passes() || (settled_ && warm_ups_ >= kWarmUps);
}

void CapturedStep::send(std::span<const double> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (!numbers_.defined()) numbers_ = zeros({count}, {DType::kF64, device_});
  const Tensor here = empty_pinned({count}, DType::kF64, device_);
  std::ranges::copy(numbers, here.data<double>());
  copy_(numbers_, here, /*non_blocking=*/true);
}

Tensor CapturedStep::number(size_t i) const { return select(numbers_, 0, static_cast<int64_t>(i)); }

void CapturedStep::capture_update(const std::function<void()>& update) {
  update_ = captured(update, update_refusal_);
}

void CapturedStep::replay_update() {
  update_->replay();
  // What is kept of weights elsewhere goes by their versions; casts have been written with them.
  for (const Tensor& weight : weights_) {
    const bool has_cast = kept_cast(weight).defined();
    weight.storage()->bump_version();
    if (has_cast) renew_kept_cast(weight);
  }
}

void CapturedStep::drop() {
  losses_ = Tensor();
  update_.reset();
  passes_.reset();
  samples_.clear();
  warm_ups_ = 0;
  is_agreed_ = settled_ = false;
}

void CapturedStep::refuse(std::string why) {
  drop();
  refusal_ = std::move(why);
}

}  // namespace lockstep::train
