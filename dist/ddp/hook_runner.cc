#include "dist/ddp/hook_runner.h"

#include <typeinfo>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/ops/pointwise/pointwise.h"
#include "dist/collectives/operation_label.h"
#include "dist/group/failure.h"
#include "dist/group/work_state.h"
#include "dist/rendezvous/rank_list.h"

namespace lockstep::dist {

namespace {

/// Whether communication itself threw the error (a subclass of DistError): it already describes the
/// failure and needs no note.
bool is_of_the_job(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const DistError& thrown) {
    return typeid(thrown) != typeid(DistError);
  } catch (...) {
    return false;
  }
}

}  // namespace

HookRunner::HookRunner(CommunicationHook hook, ProcessGroup& group, double factor)
    : hook_(std::move(hook)),
      factor_(factor),
      group_(group.subgroup(every_rank(group.size()), "gradients")) {
  thread_.start("gradient hook", [this] { serve(); });
}

HookRunner::~HookRunner() {
  bool is_early = false;
  {
    const MutexLock lock(lock_);
    stopping_ = true;
    is_early = unfinished_ > 0;
  }
  if (is_early) group_->abort("[reducer] the step was given up before its gradients were sent");
  news_.notify_one();
  thread_.join();
}

Work HookRunner::run(GradientBucket bucket) {
  Job job{.bucket = std::move(bucket), .ready = Event(), .threads = num_threads(), .work = {}};
  job.ready.record(current_stream(job.bucket.values.device()));
  job.work = std::make_shared<WorkState>();
  job.work->device = job.bucket.values.device();
  job.work->finished_at_end = is_asynchronous(job.work->device.type);
  Work work(job.work);
  {
    const MutexLock lock(lock_);
    jobs_.push_back(std::move(job));
    ++unfinished_;
  }
  news_.notify_one();
  return work;
}

// --- the hook's thread ---------------------------------------------------------------------------

void HookRunner::serve() {
  const NoGradGuard no_grad;
  std::exception_ptr failure;
  Job job;
  while (take(job)) {
    if (!failure) failure = failure_of(job);
    job.bucket = {};  // the reducer may lay its memory out anew
    {
      const MutexLock lock(lock_);
      --unfinished_;
    }
    std::exchange(job.work, nullptr)->finish(failure);
  }
}

bool HookRunner::take(Job& job) {
  UniqueLock lock(lock_);
  news_.wait(lock, [this]() LS_REQUIRES(lock_) { return stopping_ || !jobs_.empty(); });
  if (stopping_) return false;
  job = std::move(jobs_.front());
  jobs_.pop_front();
  return true;
}

std::exception_ptr HookRunner::failure_of(const Job& job) noexcept {
  try {
    run_hook(job);
    return nullptr;
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    group_->abort(words_of(error));
    return error;
  }
}

void HookRunner::run_hook(const Job& job) {
  const Tensor& values = job.bucket.values;
  const Stream side = stream(values.device());
  const StreamGuard guard(side);
  set_num_threads(job.threads);
  side.wait_event(job.ready);
  const Tensor result = call(job.bucket);
  check(job.bucket, result);
  const bool in_place = result.data() == values.data() && result.is_contiguous();
  if (!in_place) values.copy_(result);
  if (factor_ != 1) mul_(values, factor_);
  if (job.work->finished_at_end) job.work->finished.record(side);
  // Errors of kernels and communication surface here.
  side.synchronize();
}

Tensor HookRunner::call(const GradientBucket& bucket) {
  const OperationLabel label = OperationLabel::bucket(bucket.index + 1);
  try {
    return hook_.call(*group_, bucket);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (is_of_the_job(error)) throw;
    const std::string text = fmt::format("[reducer] {}: {}", place(bucket), words_of(error));
    try {
      throw;
    } catch (const DistError&) {
      throw DistError(text);
    } catch (Error& known) {
      // Keep the type: callers act on it, for instance when memory is short.
      known.add_note(fmt::format("[reducer] thrown by {}.", place(bucket)));
      throw;
    } catch (...) {
      throw DistError(text);
    }
  }
}

void HookRunner::check(const GradientBucket& bucket, const Tensor& result) const {
  const Tensor& values = bucket.values;
  const auto text = [&] {
    return fmt::format(
        "[reducer] {}: expected it to return {}, as the bucket is, got {}. Return bucket.values, "
        "changed in place, or a tensor like it.",
        place(bucket), to_string(values), result.defined() ? to_string(result) : "no tensor");
  };
  LS_CHECK(result.defined(), ShapeError, "{}", text());
  LS_CHECK(result.device() == values.device(), DeviceError, "{}", text());
  LS_CHECK(result.dtype() == values.dtype(), DTypeError, "{}", text());
  LS_CHECK(result.dim() == 1 && result.numel() == values.numel(), ShapeError, "{}", text());
}

/// Returns for example: communication hook "bf16_compress", bucket 2 (h.0.weight and 3 more).
std::string HookRunner::place(const GradientBucket& bucket) const {
  const size_t more = bucket.gradients.size() - 1;
  return fmt::format("communication hook \"{}\", bucket {} ({}{})", hook_.name, bucket.index,
                     bucket.gradients.front().name,
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

Stream HookRunner::stream(Device device) {
  if (device == kCPU) return default_stream(device);
  const std::pair key{device.type, static_cast<int>(device.index)};
  auto found = streams_.find(key);
  if (found == streams_.end()) found = streams_.emplace(key, OwnedStream(device)).first;
  return found->second.get();
}

}  // namespace lockstep::dist
