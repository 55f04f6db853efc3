// What recording costs a training step: steps of a config with and without the profiler, in turn in
// one process. The ratio is the median over rounds of a recorded step beside the mean of the plain
// ones around it, so that what else the machine does touches both.

#include "profile/profile.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "profile/profiler.h"
#include "train/trainer.h"

namespace lockstep {
namespace {

struct Options {
  std::string config = "configs/examples/kjv_best.txtpb";
  std::vector<std::string> overrides;
  int rounds = 60;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Seconds of a step, and of processor time in all threads, which other programs disturb less.
struct StepTime {
  double wall = 0;
  double processor = 0;
};

StepTime step(train::Trainer& trainer) {
  const auto processor = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double before = processor();
  const double wall = trainer.step(/*another=*/false).seconds;
  return {wall, processor() - before};
}

/// The steps of a round. The first one follows the making of a profile, which
/// leaves the caches cold, and is left out.
struct Round {
  StepTime plain;
  StepTime recorded;
  double read = 0;  ///< seconds to make a profile of the step that was recorded before
};

constexpr profile::Schedule kRound{.wait = 2, .warmup = 0, .active = 1, .repeat = 0};

Round run_round(train::Trainer& trainer, profile::Profiler& profiler) {
  using Clock = std::chrono::steady_clock;
  Round round;
  const auto start = Clock::now();
  profiler.begin_step(trainer.steps_done());
  round.read = std::chrono::duration<double>(Clock::now() - start).count();
  step(trainer);
  profiler.begin_step(trainer.steps_done());
  round.plain = step(trainer);
  profiler.begin_step(trainer.steps_done());
  LS_ASSERT(profiler.is_recording());
  round.recorded = step(trainer);
  return round;
}

nlohmann::ordered_json measure(const Options& options) {
  const std::vector<std::string> files = {options.config};
  train::Trainer trainer = train::Trainer::create(launcher::load_config(files, options.overrides));
  size_t spans = 0;
  uint64_t lost = 0;
  profile::Profiler profiler({.schedule = kRound, .limits = {}, .device = trainer.device()},
                             [&](const profile::Profile& recorded) {
                               spans = recorded.spans.size();
                               lost += recorded.lost();
                             });
  for (int i = 0; i < 3; ++i) run_round(trainer, profiler);  // caches, allocator, buffers
  std::vector<Round> rounds;
  for (int i = 0; i <= options.rounds; ++i) rounds.push_back(run_round(trainer, profiler));
  profiler.end();

  LS_CHECK(lost == 0, Error, "[bench_profile] {} spans did not fit the buffers.", lost);
  nlohmann::ordered_json figures = {{"threads", num_threads()}, {"spans", spans}};
  std::vector<double> read;
  for (size_t i = 1; i < rounds.size(); ++i) read.push_back(rounds[i].read);
  figures["read_ms"] = median(read) * 1e3;
  const auto compare = [&](const std::string& what, double StepTime::*time) {
    std::vector<double> plain, recorded, ratios;
    for (size_t i = 0; i + 1 < rounds.size(); ++i) {
      plain.push_back(rounds[i].plain.*time);
      recorded.push_back(rounds[i].recorded.*time);
      ratios.push_back(2 * recorded.back() / (plain.back() + rounds[i + 1].plain.*time));
    }
    figures["plain" + what + "_ms"] = median(plain) * 1e3;
    figures["recorded" + what + "_ms"] = median(recorded) * 1e3;
    figures["ratio" + what] = median(ratios);
    figures["ratio" + what + "_of_fastest"] = std::ranges::min(recorded) / std::ranges::min(plain);
  };
  compare("", &StepTime::wall);
  compare("_cpu", &StepTime::processor);
  return figures;
}

}  // namespace

int run(int argc, char** argv) {
  Options options;
  bool json = false;
  launcher::CommandLine line("Training steps with and without the profiler, in turn");
  line.option("config", options.config, "Config file (default: that of ./dev train)");
  line.option("--set", options.overrides, "Override one field: train.batch_size=8")
      .one_value_each();
  line.option("--rounds", options.rounds, "Recorded steps (default 60)").positive();
  line.flag("--json", json, "Print an object instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  const nlohmann::ordered_json figures = measure(options);
  if (json) {
    fmt::print("{}\n", figures.dump());
    return 0;
  }
  for (const auto& [name, value] : figures.items()) {
    fmt::print("{:<36} {:8.3f}\n", name, value.get<double>());
  }
  return 0;
}

}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
