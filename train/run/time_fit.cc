#include "train/run/time_fit.h"

#include "configs/run.pb.h"

namespace lockstep::train {

std::optional<ScheduleEnd> end_to_begin_now(const LearningRateSchedule& schedule, double time_limit,
                                            const RunPace& pace) {
  constexpr double kUsed = 0.98;  // a machine's pace varies
  if (time_limit <= 0 || pace.steps_done < schedule.warmup_steps) return std::nullopt;
  if (schedule.cooldown_steps <= 0 || schedule.cooldown_steps >= schedule.decay_steps) {
    return std::nullopt;
  }
  const auto fits = [&](int64_t first) {
    const int64_t end = schedule.end_if_cooled_from(first).steps;
    const auto left = static_cast<double>(end - pace.steps_done);
    return pace.elapsed + left * pace.step_seconds <= kUsed * time_limit;
  };
  if (fits(pace.steps_done + 1)) return std::nullopt;
  const ScheduleEnd end = schedule.end_if_cooled_from(pace.steps_done);
  if (end.steps >= schedule.decay_steps) return std::nullopt;
  return end;
}

config::RunConfig config_of_early_end(config::RunConfig config, ScheduleEnd end) {
  config.mutable_train()->set_steps(end.steps);
  config.mutable_train()->set_time_limit_seconds(0);
  config.mutable_schedule()->set_decay_steps(end.steps);
  config.mutable_schedule()->set_cooldown_steps(end.cooldown_steps);
  config.mutable_schedule()->set_fit_time_limit(false);
  return config;
}

}  // namespace lockstep::train
