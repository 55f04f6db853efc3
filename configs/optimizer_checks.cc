#include "configs/optimizer_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "configs/field.h"
#include "configs/origins.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

/// Returns why the optimizer must not change weights before backward has ended; empty if it may.
std::string reason_to_wait(const RunConfig& config) {
  if (config.optimizer().clip_grad_norm() > 0) {
    return fmt::format(
        "the norm of all gradients is not known yet: expected optimizer.clip_grad_norm: 0, got {}. "
        "Set it to 0",
        config.optimizer().clip_grad_norm());
  }
  if (config.precision() == F16_MIXED) {
    return "a step that overflows under the loss scale could not be left out: expected precision "
           "F32 or BF16_MIXED, got F16_MIXED. Choose one of them";
  }
  if (config.train().non_finite() != TrainConfig::STOP) {
    return fmt::format(
        "an update that is not finite cannot be taken back: expected train.non_finite: STOP, got "
        "{}. Set it to STOP",
        TrainConfig::NonFinite_Name(config.train().non_finite()));
  }
  using Spike = LossSpikeConfig;
  const Spike::Action spike = config.train().loss_spike().action();
  if (spike == Spike::SKIP || spike == Spike::ROLLBACK) {
    return fmt::format(
        "the update of a spike cannot be taken back: expected train.loss_spike.action: KEEP or "
        "NOTE, got {}. Choose one of them",
        Spike::Action_Name(spike));
  }
  if (config.audit().every_steps() > 0) {
    return fmt::format(
        "the update of a step that an audit finds wrong cannot be taken back: expected "
        "audit.every_steps: 0, got {}. Set it to 0",
        config.audit().every_steps());
  }
  if (config.reproducibility() == BITWISE) {
    return "a step that is not finite would leave other weights than the step before: expected "
           "reproducibility: ORDINARY, got BITWISE. Choose ORDINARY";
  }
  return "";
}

/// Ranks that share Muon's work must take every step together.
void check_muon(const RunConfig& config, const Origins& origins) {
  if (!config.optimizer().has_muon() || !config.optimizer().muon().share_ranks()) return;
  const auto refuse = [&](bool is_set, const char* other, const char* reason) {
    if (!is_set) return;
    fail(origins, "optimizer.muon.share_ranks",
         fmt::format("optimizer.muon.share_ranks does not go with {}: {}. Leave one of them out.",
                     other, reason));
  };
  refuse(config.optimizer().optimizer_in_backward(), "optimizer.optimizer_in_backward",
         "ranks update a weight when its own gradient is there, not together");
  refuse(config.parallel().has_elastic(), "parallel.elastic",
         "a rank that is lost during an update would leave the others with half of it");
  refuse(config.parallel().has_local_sgd(), "parallel.local_sgd",
         "ranks have weights of their own between two exchanges");
}

void check_groups(const OptimizerConfig& optimizer, const Origins& origins) {
  for (int i = 0; i < optimizer.groups_size(); ++i) {
    const std::string path = value_path("optimizer.groups", i);
    const auto& patterns = optimizer.groups(i).parameters();
    if (!patterns.empty() && std::ranges::find(patterns, "") == patterns.end()) continue;
    fail(origins, path,
         fmt::format("{}.parameters {}: expected patterns of names, such as \"*.bias\".", path,
                     patterns.empty() ? "is empty" : "has an empty pattern"));
  }
}

}  // namespace

void check_optimizer(const RunConfig& config, const Origins& origins) {
  check_groups(config.optimizer(), origins);
  check_muon(config, origins);
  if (config.optimizer().sgd().nesterov() && config.optimizer().sgd().momentum() == 0) {
    fail(origins, "optimizer.sgd.nesterov",
         "optimizer.sgd.nesterov needs momentum: expected optimizer.sgd.momentum above 0, got 0.");
  }
  if (!config.optimizer().optimizer_in_backward()) return;
  const std::string reason = reason_to_wait(config);
  if (reason.empty()) return;
  fail(origins, "optimizer.optimizer_in_backward",
       fmt::format("optimizer.optimizer_in_backward changes weights while backward runs, where {}, "
                   "or leave optimizer_in_backward out.",
                   reason));
}

void check_schedule(const RunConfig& config, const Origins& origins) {
  const ScheduleConfig& schedule = config.schedule();
  if (!schedule.fit_time_limit()) return;
  constexpr int64_t kToMeasure = 10;
  if (schedule.kind() == ScheduleConfig::CONSTANT) {
    fail(origins, "schedule.fit_time_limit",
         "schedule.fit_time_limit lets the learning rate fall in time: expected another "
         "schedule.kind than CONSTANT, whose rate does not fall.");
  }
  const bool falls_at_once =
      schedule.kind() == ScheduleConfig::COSINE || schedule.kind() == ScheduleConfig::LINEAR;
  if (falls_at_once && schedule.warmup_steps() < kToMeasure) {
    fail(origins, "schedule.fit_time_limit",
         fmt::format("schedule.fit_time_limit measures the pace of warm-up before the rate of {} "
                     "falls: expected schedule.warmup_steps of at least {}, got {}. Raise it, or "
                     "choose WSD, which cools down at the end.",
                     ScheduleConfig::Kind_Name(schedule.kind()), kToMeasure,
                     schedule.warmup_steps()));
  }
  if (schedule.decay_steps() != config.train().steps()) {
    fail(origins, "schedule.fit_time_limit",
         fmt::format("schedule.fit_time_limit ends the run where its rate has fallen: expected "
                     "schedule.decay_steps to be train.steps, {}, got {}. Leave decay_steps out.",
                     config.train().steps(), schedule.decay_steps()));
  }
}

}  // namespace lockstep::config
