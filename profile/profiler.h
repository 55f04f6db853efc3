#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "autograd/worker_observer.h"
#include "core/base/spans/span_recorder.h"
#include "core/dispatch/observer.h"
#include "core/memory/caching_allocator.h"
#include "core/tensor/device.h"
#include "profile/profile.h"
#include "profile/schedule.h"

namespace lockstep::profile {

struct ProfilerOptions {
  Schedule schedule = {};
  SpanLimits limits = {};
  /// Whose allocator's requests and frees are recorded, unless its backend brings one of its own,
  /// and whose kernels and copies, where its driver tells of them (core/device/device_activity.h).
  Device device = kCPU;
};

/// Profiles some steps of a program, as its schedule says:
///
///     Profiler profiler({}, [](const Profile& profile) { ... });
///     for (int64_t step = 0; step < steps; ++step) {
///       profiler.begin_step(step);
///       ...
///     }
///     profiler.end();
///
/// In these steps operators of the thread that calls `begin_step` are recorded, with those that the
/// engine runs for it on its workers, and the spans of all threads (core/base/spans/span.h):
/// backward nodes, ranges of the user. Recording takes neither locks nor memory. What it costs
/// elsewhere than in recorded steps is not measurable.
///
/// There is one at a time in a process, and a child made by fork() records nothing. All calls come
/// from one thread; guards of operators' observers and modes must not be open across `begin_step`.
class Profiler {
 public:
  /// `on_profile` is called with each cycle's profile, from `begin_step` or `end`. Throws Error
  /// while another profiler exists.
  Profiler(const ProfilerOptions& options, std::function<void(Profile)> on_profile);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Says that the step before is over and step `number` begins.
  void begin_step(int64_t number);
  /// Says that the last step is over. A cycle that was not recorded to its end is told of, too.
  /// Also to be called after a step that threw; without the call what was recorded is dropped.
  void end();

  bool is_recording() const { return action_ == StepAction::kRecord; }
  /// Steps begun so far.
  int64_t steps() const { return steps_; }

 private:
  void start();
  void stop();
  SpanRecording stop_recording();
  void deliver();
  /// Ends the recording of the device's work.
  DeviceActivities stop_activities();

  Schedule schedule_;
  std::function<void(Profile)> on_profile_;
  SpanRecorder spans_;
  Device device_;
  CachingAllocator* allocator_;         ///< null where requests are not recorded
  const ActivityRecorder* activities_;  ///< null where the device has none
  bool records_activities_ = false;
  std::string no_device_times_;
  ProfileMemory memory_;
  std::optional<ObserverGuard> guard_;
  std::optional<WorkerObserverGuard> worker_guard_;
  std::optional<Span> step_;
  StepAction action_ = StepAction::kNone;
  bool ends_cycle_ = false;
  int64_t steps_ = 0;
};

}  // namespace lockstep::profile
