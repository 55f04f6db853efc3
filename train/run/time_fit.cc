#include "train/run/time_fit.h"

#include <algorithm>

#include "configs/load.h"
#include "configs/run.pb.h"

namespace lockstep::train {

namespace {

/// The cool-down may begin at any step, so its beginning is put off as long as it may be.
std::optional<ScheduleEnd> end_if_cooled_now(const LearningRateSchedule& schedule,
                                             double time_limit, const RunPace& pace) {
  constexpr double kUsed = 0.98;  // a machine's pace varies
  if (pace.steps_done < schedule.warmup_steps || schedule.cooldown_steps <= 0 ||
      schedule.cooldown_steps >= schedule.decay_steps) {
    return std::nullopt;
  }
  const auto fits = [&](int64_t first) {
    const int64_t end = schedule.end_if_cooled_from(first).steps;
    const auto left = static_cast<double>(end - pace.steps_done);
    return pace.elapsed + left * pace.step_seconds <= kUsed * time_limit;
  };
  if (fits(pace.steps_done + 1)) return std::nullopt;
  return schedule.end_if_cooled_from(pace.steps_done);
}

/// The rate falls from the end of warm-up on by the number of all steps, which is needed there.
std::optional<ScheduleEnd> end_after_warm_up(const LearningRateSchedule& schedule,
                                             double time_limit, const RunPace& pace) {
  constexpr double kUsed = 0.96;  // more of the run is still to come, and its last steps do little
  if (pace.steps_done != schedule.warmup_steps) return std::nullopt;
  const double left = (kUsed * time_limit - pace.elapsed) / pace.step_seconds;
  const int64_t steps = pace.steps_done + std::max<int64_t>(static_cast<int64_t>(left), 1);
  return ScheduleEnd{steps, std::min(schedule.cooldown_steps, steps)};
}

}  // namespace

std::optional<ScheduleEnd> early_end(const LearningRateSchedule& schedule, double time_limit,
                                     const RunPace& pace) {
  if (time_limit <= 0 || schedule.kind == LearningRateSchedule::Kind::kConstant)
    return std::nullopt;
  const auto end = schedule.cools_down() ? end_if_cooled_now(schedule, time_limit, pace)
                                         : end_after_warm_up(schedule, time_limit, pace);
  const bool is_between = end && end->steps > pace.steps_done && end->steps < schedule.decay_steps;
  return is_between ? end : std::nullopt;
}

std::optional<double> PaceWatch::step_seconds(int64_t steps_done) {
  if (!began_ && steps_done >= first_) {
    began_ = Clock::now();
    first_ = steps_done;
  }
  if (!began_ || steps_done <= first_) return std::nullopt;
  const std::chrono::duration<double> seconds = Clock::now() - *began_;
  return seconds.count() / static_cast<double>(steps_done - first_);
}

config::RunConfig config_of_early_end(config::RunConfig config, ScheduleEnd end) {
  config.mutable_train()->set_steps(end.steps);
  config.mutable_train()->set_time_limit_seconds(0);
  config.mutable_schedule()->set_decay_steps(end.steps);
  config.mutable_schedule()->set_cooldown_steps(end.cooldown_steps);
  config.mutable_schedule()->set_fit_time_limit(false);
  return config;
}

std::string text_of_run(const config::RunConfig& config, const std::optional<ScheduleEnd>& end) {
  return config::to_text(end ? config_of_early_end(config, *end) : config);
}

}  // namespace lockstep::train
