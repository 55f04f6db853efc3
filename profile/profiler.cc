#include "profile/profiler.h"

#include <utility>

#include "core/tensor/allocator.h"
#include "profile/operator_recorder.h"

namespace lockstep::profile {

Profiler::Profiler(const ProfilerOptions& options, std::function<void(Profile)> on_profile)
    : schedule_(options.schedule),
      on_profile_(std::move(on_profile)),
      spans_(options.limits),
      allocator_(dynamic_cast<CachingAllocator*>(&allocator(options.device))),
      memory_{.device = to_string(options.device)} {}

Profiler::~Profiler() { stop(); }

void Profiler::begin_step(int64_t number) {
  step_.reset();
  if (ends_cycle_) deliver();
  const StepAction action = action_of(schedule_, steps_);
  // A recording of the warm-up is begun again, which forgets it.
  if (action != action_) action == StepAction::kNone ? stop() : start();
  action_ = action;
  ends_cycle_ = ends_cycle(schedule_, steps_);
  ++steps_;
  step_.emplace(SpanKind::kStep, "step", static_cast<uint64_t>(number));
}

void Profiler::end() {
  step_.reset();
  if (action_ == StepAction::kRecord) deliver();
  stop();
}

void Profiler::start() {
  spans_.start();
  if (allocator_ != nullptr) {
    allocator_->record_spans(true);
    memory_.begin_bytes = allocator_->stats().allocated;
  }
  // It has no state, and outlives backwards that are still running on the engine's workers.
  static OperatorRecorder operators;
  if (!guard_) guard_.emplace(operators);
  if (!worker_guard_) worker_guard_.emplace(operators);
}

void Profiler::stop() {
  step_.reset();
  if (spans_.is_running()) (void)stop_recording();
  ends_cycle_ = false;
  action_ = StepAction::kNone;
}

SpanRecording Profiler::stop_recording() {
  worker_guard_.reset();
  guard_.reset();
  if (allocator_ != nullptr) {
    memory_.end_bytes = allocator_->stats().allocated;
    allocator_->record_spans(false);
  }
  return spans_.stop();
}

void Profiler::deliver() {
  ends_cycle_ = false;
  action_ = StepAction::kNone;
  Profile profile = read_recording(stop_recording());
  if (allocator_ != nullptr) profile.memory = memory_;
  on_profile_(std::move(profile));
}

}  // namespace lockstep::profile
