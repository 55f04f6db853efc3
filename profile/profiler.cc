#include "profile/profiler.h"

#include <utility>

#include "core/device/device_runtime.h"
#include "core/tensor/allocator.h"
#include "profile/operator_recorder.h"

namespace lockstep::profile {

Profiler::Profiler(const ProfilerOptions& options, std::function<void(Profile)> on_profile)
    : schedule_(options.schedule),
      on_profile_(std::move(on_profile)),
      spans_(options.limits),
      device_(options.device),
      allocator_(dynamic_cast<CachingAllocator*>(&allocator(options.device))),
      activities_(activity_recorder(options.device.type)),
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
  if (activities_ != nullptr) {
    (void)stop_activities();  // of the warm-up
    no_device_times_ = activities_->start();
    records_activities_ = no_device_times_.empty();
  }
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
  (void)stop_activities();
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

DeviceActivities Profiler::stop_activities() {
  return std::exchange(records_activities_, false) ? activities_->stop() : DeviceActivities();
}

void Profiler::deliver() {
  ends_cycle_ = false;
  action_ = StepAction::kNone;
  // Work that still runs would have no record.
  if (records_activities_) device_runtime(device_.type)->synchronize(device_.index);
  const SpanRecording recording = stop_recording();
  Profile profile = read_recording(recording, stop_activities());
  profile.no_device_times = no_device_times_;
  if (allocator_ != nullptr) profile.memory = memory_;
  on_profile_(std::move(profile));
}

}  // namespace lockstep::profile
