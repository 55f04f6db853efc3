#include "train/run/time_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

constexpr int64_t kMany = 1'000'000;

LearningRateSchedule wsd(int64_t steps, int64_t cooldown, int64_t warmup = 0) {
  return {.kind = LearningRateSchedule::Kind::kWsd,
          .warmup_steps = warmup,
          .decay_steps = steps,
          .cooldown_steps = cooldown};
}

TEST(ScheduleEnd, TheCooldownKeepsItsShareAndBeginsWhereItIsAsked) {
  for (const auto& [steps, cooldown] : {std::pair{2400, 480}, {1000, 333}, {7, 3}, {100, 99}}) {
    const LearningRateSchedule schedule = wsd(steps, cooldown);
    for (int64_t step = 1; step < 3 * steps; ++step) {
      const ScheduleEnd end = schedule.end_if_cooled_from(step);
      EXPECT_EQ(end.steps - end.cooldown_steps, step);
      EXPECT_EQ(end.cooldown_steps, end.steps * cooldown / steps);
    }
  }
}

TEST(TimeFit, BeginsAtTheLastStepFromWhichTheCooldownFits) {
  const LearningRateSchedule schedule = wsd(kMany, kMany / 5);
  int64_t step = 1;
  std::optional<ScheduleEnd> end;
  for (; !end; ++step) {
    end =
        early_end(schedule, 101, {.steps_done = step, .elapsed = 0.1 * step, .step_seconds = 0.1});
  }
  // 98.98 seconds are 989 steps; with 791 before it, a cool-down of a fifth ends after 988.
  EXPECT_EQ(*end, (ScheduleEnd{988, 197}));
}

TEST(TimeFit, ChangesNothingWhereAllStepsFit) {
  const LearningRateSchedule schedule = wsd(979, 195);
  for (int64_t step = 1; step < 979; ++step) {
    EXPECT_FALSE(
        early_end(schedule, 100, {.steps_done = step, .elapsed = 0.1 * step, .step_seconds = 0.1}));
  }
}

TEST(TimeFit, NeedsALimitAndACooldownThatIsAPart) {
  const RunPace late{.steps_done = 10, .elapsed = 1e6, .step_seconds = 1};
  EXPECT_TRUE(early_end(wsd(100, 50), 100, late));
  EXPECT_FALSE(early_end(wsd(100, 50), 0, late));
  EXPECT_FALSE(early_end(wsd(100, 100), 100, late));
  EXPECT_FALSE(early_end(wsd(100, 0), 100, late));
}

TEST(TimeFit, WaitsForTheEndOfWarmUp) {
  const LearningRateSchedule schedule = wsd(kMany, kMany / 5, 50);
  EXPECT_FALSE(early_end(schedule, 1, {.steps_done = 49, .elapsed = 0.9, .step_seconds = 0.01}));
  EXPECT_TRUE(early_end(schedule, 1, {.steps_done = 50, .elapsed = 0.9, .step_seconds = 0.01}));
}

TEST(TimeFit, SettlesTheStepsOfASlopeAtTheEndOfWarmUpAlone) {
  for (const auto kind :
       {LearningRateSchedule::Kind::kCosine, LearningRateSchedule::Kind::kLinear}) {
    const LearningRateSchedule slope{.kind = kind, .warmup_steps = 50, .decay_steps = 1000};
    const auto end_at = [&](int64_t step, double pace) {
      return early_end(slope, 100, {.steps_done = step, .elapsed = 6, .step_seconds = pace});
    };
    // 90 of 96 seconds are left.
    EXPECT_EQ(end_at(50, 0.125), (ScheduleEnd{50 + 720, 0}));
    EXPECT_EQ(end_at(50, 100), (ScheduleEnd{51, 0})) << "at least one more step";
    EXPECT_FALSE(end_at(50, 0.09)) << "all fit";
    EXPECT_FALSE(end_at(49, 0.125));
    EXPECT_FALSE(end_at(51, 0.125));
  }
}

TEST(TimeFit, LeavesAConstantRateAlone) {
  EXPECT_FALSE(early_end({.kind = LearningRateSchedule::Kind::kConstant, .decay_steps = 100}, 1,
                         {.steps_done = 0, .elapsed = 1, .step_seconds = 1}));
}

TEST(PaceWatch, BeginsAfterTheFirstStepsOrWhereARunGoesOn) {
  PaceWatch fresh(3), later(3);
  for (int64_t step = 0; step <= 3; ++step) EXPECT_FALSE(fresh.step_seconds(step));
  EXPECT_GE(*fresh.step_seconds(4), 0);
  EXPECT_FALSE(fresh.step_seconds(2)) << "after a rollback";
  EXPECT_FALSE(later.step_seconds(100));
  EXPECT_TRUE(later.step_seconds(101));
}

/// A run of more steps than its time limit allows; of a moment that a busy machine may well use up.
class TimeFitRun : public testing::Test {
 protected:
  config::RunConfig config(double seconds, const std::string& more = "") const {
    return layered_run(folder_,
                       fmt::format("schedule {{ kind: WSD fit_time_limit: true }} train {{ "
                                   "steps: {} time_limit_seconds: {} sample_bytes: 0 }} {}",
                                   kMany, seconds, more));
  }
  /// Calls `run` with more and more time until a cool-down of several steps came in time: returns
  /// the config that the run then left.
  template <class Run>
  config::RunConfig until_fitted(const Run& run) {
    for (double seconds = 0.25;; seconds *= 2) {
      std::filesystem::remove_all(folder_ / "run");
      run(seconds);
      const std::vector<std::string> file = {(folder_ / "run/config.txtpb").string()};
      const config::RunConfig left = config::load(file);
      const bool is_fitted = left.train().steps() < kMany && left.schedule().cooldown_steps() > 3;
      if (is_fitted && rates("run").size() == size_of(left)) return left;
      if (seconds > 60) throw std::runtime_error("no run had time for its cool-down");
    }
  }
  static size_t size_of(const config::RunConfig& config) {
    return static_cast<size_t>(config.train().steps());
  }
  std::vector<double> rates(const std::string& name) const {
    const std::string metrics = file_content(folder_ / name / "metrics.jsonl");
    const std::string key = "\"lr\":";
    std::vector<double> rates;
    for (size_t at = 0; (at = metrics.find(key, at)) != std::string::npos; at += key.size()) {
      rates.push_back(std::stod(metrics.substr(at + key.size(), 32)));
    }
    return rates;
  }
  std::string log() const {
    return std::filesystem::exists(folder_ / "log") ? file_content(folder_ / "log") : "";
  }
  RunSummary train(const config::RunConfig& config, const std::string& name,
                   const StopRequest& stop = {}) {
    TrainingRun run(
        config, RunDirectory::create_at(folder_ / name, RunDirectory::Existing::kContinue), "{}");
    std::FILE* const log = std::fopen((folder_ / "log").c_str(), "a");
    const RunSummary summary = run.run({.terminal = log, .stop = stop});
    std::fclose(log);
    return summary;
  }
  std::string weights(const std::string& name) const {
    return file_content(folder_ / name / "model.safetensors");
  }

  TemporaryDirectory folder_;
};

TEST_F(TimeFitRun, CoolsDownWithinItsLimitAndItsConfigRepeatsIt) {
  bool ended_early = false;
  const config::RunConfig left = until_fitted(
      [&](double seconds) { ended_early = train(config(seconds), "run").ended_early; });
  EXPECT_TRUE(ended_early);
  EXPECT_EQ(left.train().time_limit_seconds(), 0);
  EXPECT_FALSE(left.schedule().fit_time_limit());
  EXPECT_EQ(left.schedule().decay_steps(), left.train().steps());
  EXPECT_EQ(left.schedule().cooldown_steps(), left.train().steps() / 5);
  EXPECT_TRUE(says(log(), fmt::format("the time limit leaves time for {} of {} steps",
                                      left.train().steps(), kMany)));
  const std::vector<double> fitted = rates("run");
  EXPECT_EQ(*std::ranges::max_element(fitted), fitted.front());
  EXPECT_LT(fitted.back(), 0.5 * fitted.front());

  EXPECT_FALSE(train(left, "again").ended_early);
  EXPECT_EQ(rates("again"), fitted);
  EXPECT_TRUE(weights("again") == weights("run"));
}

TEST_F(TimeFitRun, ASlopeFallsOverTheStepsThatWarmUpForetells) {
  const auto is_settled = [&] { return bool(says(log(), "the time limit leaves time for")); };
  for (double seconds = 0.25; !is_settled() && seconds < 60; seconds *= 2) {
    std::filesystem::remove_all(folder_ / "run");
    train(layered_run(folder_, fmt::format("schedule {{ warmup_steps: 10 fit_time_limit: true }} "
                                           "train {{ steps: {} time_limit_seconds: {} }}",
                                           kMany, seconds)),
          "run");
  }
  const std::vector<std::string> file = {(folder_ / "run/config.txtpb").string()};
  const config::RunConfig left = config::load(file);
  ASSERT_LT(left.train().steps(), kMany);
  // A machine that has become slower since warm-up cuts the run off.
  train(left, "again");
  const std::vector<double> fitted = rates("run"), again = rates("again");
  ASSERT_EQ(again.size(), size_of(left));
  ASSERT_LE(fitted.size(), again.size());
  EXPECT_TRUE(std::ranges::equal(fitted, std::span(again).first(fitted.size())));
}

TEST_F(TimeFitRun, ARunThatIsStoppedMeanwhileGoesOnToTheSameEnd) {
  int64_t steps = 0, stopped = 0;
  const config::RunConfig left = until_fitted([&](double seconds) {
    const auto has_fitted = [&] {
      return !says(file_content(folder_ / "run/config.txtpb"), std::to_string(kMany));
    };
    const RunSummary summary = train(config(seconds), "run", has_fitted);
    stopped = summary.steps;
    steps = train(config(100), "run").steps;
  });
  EXPECT_LT(stopped, steps);
  EXPECT_EQ(steps, left.train().steps());
  EXPECT_FALSE(says(log(), "config changed since the checkpoint: train.steps"));
  train(left, "again");
  EXPECT_EQ(rates("again"), rates("run"));
  EXPECT_TRUE(weights("again") == weights("run"));
  EXPECT_EQ(train(config(100), "run").first_step, steps) << "it is over";
}

TEST_F(TimeFitRun, AllRanksEndAlike) {
  const std::string more = "reproducibility: BITWISE train { micro_batch_size: 1 leaves: 8 } ";
  const config::RunConfig left = until_fitted(
      [&](double seconds) { rethrow_first(run_on_ranks(config(seconds, more), folder_, 3)); });
  train(left, "again");
  EXPECT_EQ(rates("again"), rates("run"));
  EXPECT_TRUE(weights("again") == weights("run"));
}

TEST_F(TimeFitRun, ATrainerThatGoesOnWithOtherRanksKeepsItsEnd) {
  const config::RunConfig config = this->config(100);
  Trainer trainer = Trainer::create(config);
  trainer.end_early({40, 8});
  Trainer::Legacy legacy = trainer.leave();
  const Trainer next = Trainer::create(config, legacy, nullptr);
  EXPECT_EQ(next.early_end(), (ScheduleEnd{40, 8}));
  EXPECT_EQ(next.schedule().decay_steps, 40);
}

}  // namespace
}  // namespace lockstep::train
