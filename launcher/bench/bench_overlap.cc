#include "launcher/bench/bench_overlap.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/parallel.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "dist/ddp/overlap.h"
#include "dist/group/agreement.h"
#include "dist/group/thread_group.h"
#include "dist/rendezvous/core_budget.h"
#include "launcher/bench/busy_time.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/picture.h"
#include "launcher/ranks.h"
#include "launcher/verbs.h"
#include "train/build.h"
#include "train/gradient_options.h"
#include "train/report/overlap_report.h"
#include "train/report/step_overlap.h"
#include "train/run/planned_work.h"
#include "train/trainer.h"

namespace lockstep::launcher {

namespace {

using Clock = std::chrono::steady_clock;
using dist::ProcessGroup;
using train::StepOverlap;

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  int64_t steps = 8;
  int thread_ranks = 0;
  bool json = false;
  std::string svg;
};

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// Runs `steps` steps, each including the work it queues, and returns their times.
std::vector<StepOverlap> timed_steps(train::Trainer& trainer, ProcessGroup& group, int64_t steps) {
  std::vector<StepOverlap> all;
  const Stream stream = current_stream(trainer.device());
  trainer.step();
  stream.synchronize();
  for (int64_t i = 0; i < steps; ++i) {
    group.barrier().wait();
    const Clock::time_point start = Clock::now();
    trainer.step();
    stream.synchronize();
    const double seconds = seconds_between(start, Clock::now());
    all.push_back(trainer.sharded() != nullptr
                      ? train::overlap_of_step(trainer.sharded()->times(), seconds,
                                               trainer.sharded()->gather_waits())
                      : train::overlap_of_step(trainer.reducer()->times(), seconds));
  }
  return all;
}

double largest(ProcessGroup& group, double value) {
  dist::largest_of(group, {&value, 1});
  return value;
}

struct Communication {
  double seconds = 0;
  double machine_cpu = 0;  ///< CPU seconds of all processes and the kernel on this machine
};

/// Measures `run`, the communication of a step without its computation.
Communication measure_alone(ProcessGroup& group, int64_t times, const std::function<void()>& run) {
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
  return {largest(group, train::median(seconds)), busy / static_cast<double>(times)};
}

/// Measures the communication of all buckets, one after the other.
Communication communicate(ProcessGroup& group, Device device, const std::vector<int64_t>& bytes,
                          int64_t times) {
  std::vector<Tensor> buckets;
  for (const int64_t each : bytes) buckets.push_back(zeros({each / 4}, {DType::kF32, device}));
  return measure_alone(group, times, [&] {
    std::vector<dist::Work> works;
    for (const Tensor& each : buckets) works.push_back(group.all_reduce(each));
    for (const dist::Work& work : works) work.wait();
    current_stream(device).synchronize();
  });
}

int ranks_on_this_machine(ProcessGroup& group) {
  const Tensor own = empty({1}, {DType::kI64, kCPU}).fill_(kernel_identity());
  const Tensor all = empty({group.size()}, {DType::kI64, kCPU});
  group.all_gather(all, own).wait();
  const auto* const first = all.data<int64_t>();
  return static_cast<int>(std::count(first, first + group.size(), kernel_identity()));
}

struct Report {
  StepOverlap compute;  ///< times without communication, on the slowest rank
  train::OverlapReport overlap;
  double communication = 0;
  double stolen_cpu = 0;
  double best = 0;
};

/// Adds what both ways of measuring say.
void finish(Report& report) {
  train::OverlapReport& overlap = report.overlap;
  if (report.best > overlap.step.seconds) {
    overlap.contradiction = fmt::format(
        "the best schedule ({:.1f} ms) is above the step ({:.1f} ms): computation ({:.1f} ms) and "
        "communication ({:.1f} ms) were timed at other moments, when this machine was slower. "
        "Measure again, with more --steps or fewer other programs.",
        report.best * 1e3, overlap.step.seconds * 1e3, report.compute.seconds * 1e3,
        report.communication * 1e3);
  }
  overlap.more = {{"compute_ms", report.compute.seconds * 1e3},
                  {"compute_first_ready_ms",
                   report.compute.ready.empty() ? 0 : report.compute.ready.front() * 1e3},
                  {"compute_backward_ms", report.compute.backward_end * 1e3},
                  {"comm_ms", report.communication * 1e3},
                  {"comm_cpu_ms", report.stolen_cpu * 1e3},
                  {"best_schedule_ms", report.best * 1e3}};
}

Report measure_copies(const config::RunConfig& config, ProcessGroup& group, int64_t steps) {
  const train::StepShare share = train::share_of_step(config.train(), &group);
  train::Trainer trainer = train::Trainer::create(config, train::build_task(config, share), &group);
  Report report;
  // Warms up: trains until the reducer has settled on the order and sizes of buckets.
  while (!trainer.reducer()->is_settled()) trainer.step();
  trainer.step();
  trainer.reducer()->set_communication(false);
  report.compute = latest_of_ranks(group, train::median_step(timed_steps(trainer, group, steps)));
  trainer.reducer()->set_communication(true);
  const std::vector<int64_t>& bytes = report.compute.bytes;
  const Device device = trainer.device();
  const Communication communication = communicate(group, device, bytes, steps);
  train::OverlapReport& overlap = report.overlap;
  overlap = train::overlap_report(group, timed_steps(trainer, group, steps), config.name());
  overlap.contents = trainer.reducer()->contents();
  overlap.alone_from = "measured: the bucket's share of all transfers without computation";
  overlap.sizes = train::sizes_of_buckets(*trainer.reducer());
  report.communication = communication.seconds;

  const int local = ranks_on_this_machine(group);
  const int cores = dist::core_budget().usable() / local;
  // Communication takes CPU time from computation only if kernels use all cores; a GPU uses none.
  if (device.type != DeviceType::kCUDA && cores <= num_threads())
    report.stolen_cpu = communication.machine_cpu / local;
  report.stolen_cpu = largest(group, report.stolen_cpu);
  dist::LinkProfile link;
  for (const int64_t each : bytes) {
    const double share = static_cast<double>(each) / static_cast<double>(overlap.bytes());
    link.seconds.push_back(communication.seconds * share);
    link.stolen_cpu.push_back(report.stolen_cpu * share);
  }
  overlap.alone.assign(link.seconds.begin(), link.seconds.end());
  report.best = dist::best_schedule({.ready = report.compute.ready,
                                     .backward_end = report.compute.backward_end,
                                     .tail = report.compute.seconds - report.compute.backward_end},
                                    link);
  finish(report);
  return report;
}

/// Of steps without communication: those of a copy of the whole model, which does the same work.
StepOverlap compute_alone(const config::RunConfig& config, ProcessGroup& group, int64_t steps) {
  config::RunConfig whole = config;
  whole.mutable_parallel()->set_strategy(config::ParallelConfig::DDP);
  whole.mutable_parallel()->set_shard_size(0);
  const train::StepShare share = train::share_of_step(whole.train(), &group);
  train::Trainer trainer = train::Trainer::create(whole, train::build_task(whole, share), &group);
  while (!trainer.reducer()->is_settled()) trainer.step();
  trainer.reducer()->set_communication(false);
  return latest_of_ranks(group, train::median_step(timed_steps(trainer, group, steps)));
}

/// The step of a sharded model if computation and communication took the times that they take alone
/// and units were gathered and reduced in their order.
double best_of_units(const config::RunConfig& config, const Report& report, int ranks) {
  const StepOverlap& compute = report.compute;
  const double bound = std::max(compute.seconds, report.communication);
  // Of replicas two groups of ranks communicate, whose times were not measured apart.
  if (config.parallel().strategy() == config::ParallelConfig::HYBRID_SHARD) return bound;
  const dist::StepWork work =
      train::timed_work(train::count_work(config, ranks),
                        {.step = compute.seconds,
                         .update = compute.seconds - compute.backward_end,
                         .first_ready = compute.ready.empty() ? 0 : compute.ready.front()});
  const dist::ShardingWork sharding = train::sharding_work(config, ranks);
  dist::Cluster cluster{.hosts = ranks, .collectives = dist::Collectives::kDirect};
  const double sent = dist::simulate_sharded(work, cluster, sharding).sent_bytes;
  cluster.between.bytes_per_second = sent / report.communication;
  cluster.cpu_per_byte = report.stolen_cpu / sent;
  return std::max(bound, dist::simulate_sharded(work, cluster, sharding).seconds);
}

Report measure_sharded(const config::RunConfig& config, ProcessGroup& group, int64_t steps) {
  Report report;
  report.compute = compute_alone(config, group, steps);
  const train::StepShare share = train::share_of_step(config.train(), &group);
  train::Trainer trainer = train::Trainer::create(config, train::build_task(config, share), &group);
  for (int i = 0; i < 2; ++i) trainer.step();
  dist::ShardedModel& sharded = *trainer.sharded();
  const Communication communication = measure_alone(group, steps, [&] {
    sharded.communicate(share.micro_batches);
    current_stream(trainer.device()).synchronize();
  });
  train::OverlapReport& overlap = report.overlap;
  overlap = train::overlap_report(group, timed_steps(trainer, group, steps), config.name());
  add_units(overlap, sharded);
  overlap.alone_from = "estimated: the unit's share of all communication without computation";
  overlap.alone.clear();
  for (const int64_t each : overlap.step.bytes) {
    overlap.alone.emplace_back(communication.seconds * static_cast<double>(each) /
                               static_cast<double>(overlap.bytes()));
  }
  report.communication = communication.seconds;
  report.stolen_cpu = largest(group, communication.machine_cpu / ranks_on_this_machine(group));
  report.best = best_of_units(config, report, group.size());
  finish(report);
  return report;
}

void print_gathers(const train::OverlapReport& overlap) {
  if (overlap.units.empty()) return;
  const StepOverlap& step = overlap.step;
  fmt::print("{:.1f} ms of waiting for parameters\n", step.gathers() * 1e3);
  fmt::print("{:>6} {:>10} {:>9} {:>9}  {}\n", "unit", "bytes", "waited", "late", "module");
  for (size_t u = 0; u < step.gather_wait.size(); ++u) {
    fmt::print("{:>6} {:>10} {:>9.1f} {:>9.1f}  {}\n", u + 1, overlap.unit_bytes[u],
               step.gather_wait[u] * 1e3, step.gather_late[u] * 1e3,
               overlap.units[u].empty() ? "what is outside of blocks" : overlap.units[u]);
  }
}

void print_table(const Report& report) {
  const train::OverlapReport& overlap = report.overlap;
  const StepOverlap& step = overlap.step;
  fmt::print(
      "{}: {} ranks, {:.1f} MB of gradients\n"
      "compute {:.1f} ms, communication {:.1f} ms (processor {:.1f} ms)\n"
      "step {:.1f} ms, at best {:.1f} ms ({:.3f} of it); {:.1f} ms exposed: rank {}, the slowest, "
      "in "
      "the median of {} steps\n",
      overlap.name, overlap.ranks, static_cast<double>(overlap.gradient_bytes()) * 1e-6,
      report.compute.seconds * 1e3, report.communication * 1e3, report.stolen_cpu * 1e3,
      step.seconds * 1e3, report.best * 1e3, step.seconds / report.best, step.exposed * 1e3,
      overlap.rank, overlap.steps);
  if (!overlap.contradiction.empty()) fmt::print("note: {}\n", overlap.contradiction);
  fmt::print("{}\n{:>6} {:>10} {:>9} {:>9} {:>9} {:>9}  {}\n", overlap.sizes, "bucket", "bytes",
             "ready", "launched", "done", "exposed", "because of");
  const std::vector<double> waits = overlap.exposed();
  const std::vector<std::string> causes = train::cause_texts(overlap);
  for (size_t b = 0; b < step.bytes.size(); ++b) {
    fmt::print("{:>6} {:>10} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}  {}\n", b + 1, step.bytes[b],
               step.ready[b] * 1e3, step.launched[b] * 1e3, step.done[b] * 1e3, waits[b] * 1e3,
               causes[b]);
  }
}

void run_rank(const Options& options, const config::RunConfig& config, ProcessGroup& group) {
  const Report report = train::is_sharded(config, &group)
                            ? measure_sharded(config, group, options.steps)
                            : measure_copies(config, group, options.steps);
  if (group.rank() != 0) return;
  if (options.json) {
    fmt::print("{}\n", overlap_json(report.overlap));
  } else {
    print_table(report);
    print_gathers(report.overlap);
  }
  if (!options.svg.empty()) {
    write_text(options.svg, train::overlap_chart(overlap_timeline(report.overlap)));
  }
}

/// Rethrows the first rank's exception, preferring others to PeerLostError, which is a consequence.
void rethrow_cause(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr lost;
  for (const std::exception_ptr& error : errors) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const PeerLostError&) {
      if (!lost) lost = error;
    }
  }
  if (lost) std::rethrow_exception(lost);
}

void run_in_threads(const Options& options, const config::RunConfig& config) {
  const int count = options.thread_ranks;
  const int threads =
      config.threads() > 0 ? config.threads() : dist::threads_for_rank(dist::core_budget(), count);
  rethrow_cause(dist::run_thread_ranks(count, [&](ProcessGroup& group) {
    // A stream per rank: in a shared one, a rank's wait would block the work of the other ranks.
    const StreamGuard own_stream(get_stream_from_pool(parse_device(config.device())));
    set_num_threads(threads);
    run_rank(options, config, group);
  }));
}

void run_overlap(const Options& options) {
  const auto load = [&] { return load_config(options.files, options.overrides); };
  if (options.thread_ranks > 0) return run_in_threads(options, load());
  Ranks ranks = join_ranks();
  LS_CHECK(ranks.group != nullptr, ConfigError,
           "[bench overlap] this rank is alone: expected at least two. Start them with `lockstep "
           "launch -np 2 lockstep bench overlap ...` or mpirun, or set --thread-ranks.");
  tell_errors(ranks, [&] {
    const config::RunConfig config = load();
    assign_devices(ranks, config);
    set_rank_threads(ranks, config.threads());
    run_rank(options, config, *ranks.group);
  });
}

}  // namespace

void add_bench_overlap(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb = bench.verb(
      "overlap", "How much of the communication of ranks hides behind their computation");
  verb.option("config", options->files, "Config files (.txtpb)").required();
  verb.option("--set", options->overrides, "FIELD=VALUE over the files");
  verb.option("--steps", options->steps, "Timed steps of each kind (default 8)").positive();
  verb.option("--thread-ranks", options->thread_ranks,
              "Ranks that are threads of this process, instead of those that were started")
      .between(2, 64);
  verb.flag("--json", options->json, "One JSON object instead of a table");
  verb.option("--svg", options->svg, "Also draw the step's timeline to FILE.svg, .png or .pdf");
  verb.runs([options] { run_overlap(*options); });
}

}  // namespace lockstep::launcher
