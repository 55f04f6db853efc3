#include "launcher/bench_overlap.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "configs/variables.h"
#include "core/check.h"
#include "core/ops/factory.h"
#include "core/parallel.h"
#include "dist/core_budget.h"
#include "dist/overlap.h"
#include "launcher/busy_time.h"
#include "launcher/ranks.h"
#include "launcher/verbs.h"
#include "train/build.h"
#include "train/overlap_chart.h"
#include "train/trainer.h"

namespace lockstep::launcher {

namespace {

using Clock = std::chrono::steady_clock;
using dist::ProcessGroup;
using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  int64_t steps = 8;
  bool json = false;
  std::string svg;
};

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// A step of one rank, in seconds after its beginning.
struct Step {
  double seconds = 0;
  double backward_end = 0;
  double exposed = 0;
  std::vector<double> ready, launched, done;  ///< by bucket
};

Step timed_step(train::Trainer& trainer) {
  const Clock::time_point start = Clock::now();
  const train::StepResult result = trainer.step();
  const dist::Reducer& reducer = trainer.reducer();
  Step step{.seconds = result.seconds,
            .backward_end = seconds_between(start, reducer.backward_ended()),
            .exposed = result.exposed_comm_ms * 1e-3};
  for (const dist::BucketTimes& bucket : reducer.bucket_times()) {
    step.ready.push_back(seconds_between(start, bucket.ready));
    step.launched.push_back(seconds_between(start, bucket.launched));
    step.done.push_back(seconds_between(start, bucket.done));
  }
  return step;
}

/// The medians of every figure over `steps` steps.
Step median_step(train::Trainer& trainer, ProcessGroup& group, int64_t steps) {
  std::vector<Step> all;
  trainer.step();
  for (int64_t i = 0; i < steps; ++i) {
    group.barrier().wait();
    all.push_back(timed_step(trainer));
  }
  const auto over_steps = [&](const auto& figure) {
    std::vector<double> values;
    for (const Step& each : all) values.push_back(figure(each));
    return median(std::move(values));
  };
  Step result;
  result.seconds = over_steps([](const Step& s) { return s.seconds; });
  result.backward_end = over_steps([](const Step& s) { return s.backward_end; });
  result.exposed = over_steps([](const Step& s) { return s.exposed; });
  for (size_t b = 0; b < all[0].ready.size(); ++b) {
    result.ready.push_back(over_steps([b](const Step& s) { return s.ready[b]; }));
    result.launched.push_back(over_steps([b](const Step& s) { return s.launched[b]; }));
    result.done.push_back(over_steps([b](const Step& s) { return s.done[b]; }));
  }
  return result;
}

std::vector<double> over_ranks(ProcessGroup& group, const std::vector<double>& values,
                               dist::ReduceOp op) {
  const Tensor tensor = empty({static_cast<int64_t>(values.size())}, {DType::kF64, kCPU});
  std::ranges::copy(values, tensor.data<double>());
  group.all_reduce(tensor, {op}).wait();
  return {tensor.data<double>(), tensor.data<double>() + values.size()};
}

double largest(ProcessGroup& group, double value) {
  return over_ranks(group, {value}, dist::ReduceOp::kMax)[0];
}

/// Of all ranks the latest.
Step slowest(ProcessGroup& group, Step step) {
  step.seconds = largest(group, step.seconds);
  step.backward_end = largest(group, step.backward_end);
  step.exposed = largest(group, step.exposed);
  step.ready = over_ranks(group, step.ready, dist::ReduceOp::kMax);
  step.done = over_ranks(group, step.done, dist::ReduceOp::kMax);
  return step;
}

struct Communication {
  double seconds = 0;
  double machine_cpu = 0;  ///< of all processes and the system, on this machine
};

/// All buckets one after the other, without computation.
Communication communicate(ProcessGroup& group, const std::vector<int64_t>& bytes, int64_t times) {
  std::vector<Tensor> buckets;
  for (const int64_t each : bytes) buckets.push_back(zeros({each / 4}, {DType::kF32, kCPU}));
  const auto run = [&] {
    std::vector<dist::Work> works;
    for (const Tensor& each : buckets) works.push_back(group.all_reduce(each));
    for (const dist::Work& work : works) work.wait();
  };
  run();
  std::vector<double> seconds;
  double busy = 0;
  for (int64_t i = 0; i < times; ++i) {
    group.barrier().wait();
    const Clock::time_point start = Clock::now();
    const double before = busy_seconds();
    run();
    seconds.push_back(seconds_between(start, Clock::now()));
    busy += busy_seconds() - before;
  }
  return {largest(group, median(seconds)), busy / static_cast<double>(times)};
}

int ranks_on_this_machine(ProcessGroup& group) {
  const Tensor own = empty({1}, {DType::kI64, kCPU}).fill_(kernel_identity());
  const Tensor all = empty({group.size()}, {DType::kI64, kCPU});
  group.all_gather(all, own).wait();
  const auto* const first = all.data<int64_t>();
  return static_cast<int>(std::count(first, first + group.size(), kernel_identity()));
}

struct Report {
  Step compute;   ///< without communication; the slowest rank
  Step measured;  ///< with it
  Step own;       ///< the same of this rank
  std::vector<int64_t> bytes;
  double communication = 0;
  double stolen_cpu = 0;
  double best = 0;

  double alone(size_t bucket) const {
    int64_t all = 0;
    for (const int64_t each : bytes) all += each;
    return communication * static_cast<double>(bytes[bucket]) / static_cast<double>(all);
  }
};

Report measure(train::Trainer& trainer, ProcessGroup& group, int64_t steps) {
  Report report;
  for (int i = 0; i < 3; ++i) trainer.step();  // the order of buckets is learnt, caches are warm
  for (const dist::BucketTimes& each : trainer.reducer().bucket_times()) {
    report.bytes.push_back(each.bytes);
  }
  trainer.reducer().set_communication(false);
  report.compute = slowest(group, median_step(trainer, group, steps));
  trainer.reducer().set_communication(true);
  const Communication communication = communicate(group, report.bytes, steps);
  report.own = median_step(trainer, group, steps);
  report.measured = slowest(group, report.own);
  report.communication = communication.seconds;

  const int local = ranks_on_this_machine(group);
  const int cores = dist::core_budget().usable() / local;
  if (cores <= num_threads()) report.stolen_cpu = communication.machine_cpu / local;
  report.stolen_cpu = largest(group, report.stolen_cpu);
  dist::LinkProfile link{.seconds = {}, .stolen_cpu = report.stolen_cpu};
  for (size_t b = 0; b < report.bytes.size(); ++b) link.seconds.push_back(report.alone(b));
  report.best = dist::best_schedule({.ready = report.compute.ready,
                                     .backward_end = report.compute.backward_end,
                                     .tail = report.compute.seconds - report.compute.backward_end},
                                    link);
  return report;
}

std::vector<dist::Exposure> causes(const Report& report) {
  std::vector<dist::MeasuredBucket> buckets;
  for (size_t b = 0; b < report.bytes.size(); ++b) {
    buckets.push_back({.ready = report.own.ready[b],
                       .all_ready = report.measured.ready[b],
                       .done = report.own.done[b],
                       .alone = report.alone(b)});
  }
  return dist::explain_exposure(buckets, report.own.backward_end);
}

void print(const Report& report, const config::RunConfig& config, const ProcessGroup& group,
           bool as_json) {
  const std::vector<dist::Exposure> cause = causes(report);
  int64_t bytes = 0;
  for (const int64_t each : report.bytes) bytes += each;
  if (!as_json) {
    fmt::print(
        "{}: {} ranks, {:.1f} MB of gradients\n"
        "compute {:.1f} ms, communication {:.1f} ms (processor {:.1f} ms)\n"
        "step {:.1f} ms, at best {:.1f} ms ({:.3f} of it); {:.1f} ms exposed\n"
        "{:>6} {:>10} {:>9} {:>9} {:>9} {:>9}  {}\n",
        config.name(), group.size(), static_cast<double>(bytes) * 1e-6,
        report.compute.seconds * 1e3, report.communication * 1e3, report.stolen_cpu * 1e3,
        report.measured.seconds * 1e3, report.best * 1e3, report.measured.seconds / report.best,
        report.measured.exposed * 1e3, "bucket", "bytes", "ready", "launched", "done", "exposed",
        "because of");
  }
  Json buckets = Json::array();
  for (size_t b = 0; b < report.bytes.size(); ++b) {
    const double exposed = std::max(0.0, report.own.done[b] - report.own.backward_end);
    if (as_json) {
      buckets.push_back({{"bytes", report.bytes[b]},
                         {"ready_ms", report.own.ready[b] * 1e3},
                         {"launched_ms", report.own.launched[b] * 1e3},
                         {"done_ms", report.own.done[b] * 1e3},
                         {"exposed_ms", exposed * 1e3},
                         {"cause", dist::name(cause[b])}});
    } else {
      fmt::print("{:>6} {:>10} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}  {}\n", b, report.bytes[b],
                 report.own.ready[b] * 1e3, report.own.launched[b] * 1e3, report.own.done[b] * 1e3,
                 exposed * 1e3, dist::name(cause[b]));
    }
  }
  if (as_json) {
    const Json json = {{"config", config.name()},
                       {"ranks", group.size()},
                       {"gradient_bytes", bytes},
                       {"compute_ms", report.compute.seconds * 1e3},
                       {"comm_ms", report.communication * 1e3},
                       {"comm_cpu_ms", report.stolen_cpu * 1e3},
                       {"step_ms", report.measured.seconds * 1e3},
                       {"best_schedule_ms", report.best * 1e3},
                       {"exposed_comm_ms", report.measured.exposed * 1e3},
                       {"buckets", buckets}};
    fmt::print("{}\n", json.dump());
  }
}

void write_chart(const Report& report, const config::RunConfig& config, const ProcessGroup& group,
                 const std::string& path) {
  const std::vector<dist::Exposure> cause = causes(report);
  train::OverlapTimeline timeline{.title = fmt::format("{}, {} ranks", config.name(), group.size()),
                                  .backward_end = report.own.backward_end * 1e3,
                                  .wait_end = (report.own.backward_end + report.own.exposed) * 1e3,
                                  .step_end = report.own.seconds * 1e3,
                                  .buckets = {}};
  for (size_t b = 0; b < report.bytes.size(); ++b) {
    timeline.buckets.push_back({.bytes = report.bytes[b],
                                .ready = report.own.ready[b] * 1e3,
                                .done = report.own.done[b] * 1e3,
                                .cause = dist::name(cause[b])});
  }
  std::ofstream file(path);
  file << train::overlap_chart(timeline);
  file.close();
  LS_CHECK(file.good(), DataError, "[bench overlap] cannot write {}.", path);
}

void run_overlap(const Options& options) {
  const Ranks ranks = join_ranks({});
  LS_CHECK(ranks.group != nullptr, ConfigError,
           "[bench overlap] this rank is alone: expected at least two. Start them with `lockstep "
           "launch -np 2 lockstep bench overlap ...` or mpirun.");
  ProcessGroup& group = *ranks.group;
  const config::RunConfig config =
      config::load(options.files, options.overrides, nullptr, config::process_variables());
  share_cores(ranks, config.threads());
  const train::StepShare share = train::share_of_step(config.train(), &group);
  train::Trainer trainer(config, train::build_task(config, share), &group);
  const Report report = measure(trainer, group, options.steps);
  if (!ranks.leads()) return;
  print(report, config, group, options.json);
  if (!options.svg.empty()) write_chart(report, config, group, options.svg);
}

}  // namespace

void add_bench_overlap(CLI::App& bench) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = bench.add_subcommand(
      "overlap", "How much communication hides behind computation; started by mpirun or launch");
  verb->add_option("config", options->files, "Config files (.txtpb)")->required();
  verb->add_option("--set", options->overrides, "FIELD=VALUE over the files");
  verb->add_option("--steps", options->steps, "Timed steps of each kind (default 8)")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--json", options->json, "One JSON object instead of a table");
  verb->add_option("--svg", options->svg, "Also draw the step's timeline to this file");
  verb->callback([options] { run_overlap(*options); });
}

}  // namespace lockstep::launcher
