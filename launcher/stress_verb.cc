#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "configs/memory_options.h"
#include "configs/run.pb.h"
#include "core/base/digits.h"
#include "core/base/json_line.h"
#include "core/memory/caching_allocator.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/driver_memory.h"
#include "launcher/exit_code.h"
#include "launcher/stress/stress.h"
#include "launcher/stress/stress_scenarios.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

namespace {

struct Options {
  const char* verb = "allocator";
  StressKind kind = StressKind::kAllocator;
  std::string device;
  std::string scenario;
  std::string config;
  std::string fault;
  int threads = 4;
  int streams = 4;
  double seconds = 10;
  uint64_t seed = 0;
  bool json = false;
};

/// Names of faults by their number.
constexpr std::array<std::string_view, 5> kFaults = {"none", "lost-event", "early-reuse",
                                                     "flipped-byte", "late-copy"};

StressFault fault_of(const std::string& name) {
  const auto found = std::ranges::find(kFaults, std::string_view(name));
  return found == kFaults.end() ? StressFault::kNone
                                : static_cast<StressFault>(found - kFaults.begin());
}

std::string mib(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0);
}

struct Target {
  Device device;
  AllocatorOptions options;
};

/// The device of --device, else the config's, else host:0, with the allocator options of the
/// config, else of the environment.
Target target_of(const Options& options) {
  const auto with_options = [](Device device) {
    return Target{device, caching_allocator(device).options()};
  };
  if (options.config.empty()) {
    return with_options(parse_device(options.device.empty() ? "host:0" : options.device));
  }
  const std::vector<std::string> files = {options.config};
  const config::RunConfig config = load_config(files);
  Target target =
      with_options(parse_device(options.device.empty() ? config.device() : options.device));
  target.options = config::allocator_options(config.memory(), target.options);
  return target;
}

void print_findings(const std::vector<std::string>& findings) {
  for (const std::string& finding : findings) fmt::print("             {}\n", finding);
}

std::string command_to_repeat(const Options& options, Device device, uint64_t seed) {
  return fmt::format("lockstep stress {} --device {} --threads {} --streams {} --seed {}{}",
                     options.verb, to_string(device), options.threads, options.streams, seed,
                     options.fault.empty() ? "" : " --inject " + options.fault);
}

void print_json(const Options& options, Device device, const StressReport& report, bool passed) {
  const StressProgram::Counts& counts = report.counts;
  JsonLine line;
  line.add("verb", options.verb)
      .add("device", to_string(device))
      .add("threads", options.threads)
      .add("streams", options.streams)
      .add("programs", report.programs)
      .add("seed", options.seed)
      .add("seconds", report.seconds)
      .add("operations", counts.operations)
      .add("verified_blocks", counts.blocks)
      .add("verified_bytes", counts.verified_bytes)
      .add("out_of_memory", counts.out_of_memory)
      .add("peak_allocated_bytes", report.peak_allocated_bytes)
      .add("findings", report.findings)
      .add("passed", passed);
  if (!options.fault.empty()) line.add("injected", options.fault).add("faults", counts.faults);
  if (!report.first_findings.empty()) line.add("first_finding", report.first_findings[0]);
  fmt::print("{}\n", line.text());
}

void print_text(const Options& options, Device device, const StressReport& report) {
  const StressProgram::Counts& counts = report.counts;
  fmt::print("{} on {}: {} threads, {} streams, {} programs from seed {} in {:.1f} s\n",
             options.verb, to_string(device), options.threads, options.streams,
             grouped(report.programs), options.seed, report.seconds);
  fmt::print(
      "operations   {}, {} a second\n", grouped(counts.operations),
      grouped(static_cast<int64_t>(static_cast<double>(counts.operations) / report.seconds)));
  fmt::print("verified     {} blocks when they were freed, {} in all\n", grouped(counts.blocks),
             mib(counts.verified_bytes));
  if (counts.out_of_memory > 0) fmt::print("no memory    {} times\n", counts.out_of_memory);
  fmt::print(
      "memory       {} on loan at most, {} reserved at the end; {} on loan and {} reserved "
      "after the cache was emptied\n",
      mib(report.peak_allocated_bytes), mib(report.reserved_bytes), mib(report.live_bytes),
      mib(report.kept_bytes));
  if (!options.fault.empty()) {
    fmt::print("injected     {}, {} times\n", options.fault, grouped(counts.faults));
    fmt::print("verdict      {}\n", report.passed() ? "FAILED: not noticed" : "passed: noticed");
    print_findings(report.first_findings);
    return;
  }
  if (report.passed()) {
    fmt::print("verdict      passed: everything verified\n");
    return;
  }
  fmt::print("verdict      FAILED: {} findings\n", grouped(report.findings));
  print_findings(report.first_findings);
  fmt::print("to repeat    {}\n",
             command_to_repeat(options, device, report.failing_seed.value_or(options.seed)));
}

/// Runs random programs; returns true if there were no findings, or if those of a fault were made
/// that was put in.
bool run_programs(const Options& options, const Target& target) {
  CachingAllocator& allocator = caching_allocator(target.device);
  allocator.set_options(target.options);
  const StressReport report = run_stress(allocator, {.device = target.device,
                                                     .kind = options.kind,
                                                     .fault = fault_of(options.fault),
                                                     .threads = options.threads,
                                                     .streams = options.streams,
                                                     .seconds = options.seconds,
                                                     .seed = options.seed});
  const bool noticed = report.counts.faults > 0 && report.counts.verified_bytes > 0;
  const bool passed = options.fault.empty() ? report.passed() : !report.passed() && noticed;
  if (options.json) {
    print_json(options, target.device, report, passed);
  } else {
    print_text(options, target.device, report);
  }
  return passed;
}

bool belongs(const StressScenario& scenario, StressKind kind) {
  return kind == StressKind::kAllocator || scenario.is_of_streams;
}

bool run_scenarios(const Options& options, const Target& target) {
  const Device device = target.device;
  bool passed = true;
  for (const StressScenario& scenario : stress_scenarios()) {
    if (options.scenario != "all" && options.scenario != scenario.name) continue;
    if (!belongs(scenario, options.kind)) continue;
    const ScenarioReport report =
        run_scenario(scenario, device, driver_memory(device), target.options, options.seed);
    passed = passed && report.passed();
    if (options.json) {
      JsonLine line;
      line.add("verb", options.verb)
          .add("device", to_string(device))
          .add("scenario", scenario.name)
          .add("seed", options.seed)
          .add("seconds", report.seconds)
          .add("operations", report.operations)
          .add("measured", report.measured)
          .add("findings", report.findings.size())
          .add("passed", report.passed());
      if (!report.findings.empty()) line.add("first_finding", report.findings[0]);
      fmt::print("{}\n", line.text());
      continue;
    }
    fmt::print("{:<20} {}\n", scenario.name, scenario.promise);
    if (!report.measured.empty()) fmt::print("measured     {}\n", report.measured);
    fmt::print("operations   {} in {:.2f} s\n", grouped(report.operations), report.seconds);
    fmt::print("verdict      {}\n", report.passed() ? "passed" : "FAILED");
    print_findings(report.findings);
    if (!report.passed()) {
      fmt::print("to repeat    lockstep stress {} --device {} --scenario {} --seed {}\n",
                 options.verb, to_string(device), scenario.name, options.seed);
    }
  }
  return passed;
}

/// Runs the verb; throws ExitStatus if there were findings.
void run_verb(const Options& options) {
  const Target target = target_of(options);
  const bool passed =
      options.scenario.empty() ? run_programs(options, target) : run_scenarios(options, target);
  if (!passed) throw ExitStatus(kFailure);
}

void add_kind(const Verb& stress, const char* name, StressKind kind, const char* description) {
  auto options = std::make_shared<Options>();
  options->verb = name;
  options->kind = kind;
  const Verb verb = stress.verb(name, description);
  std::vector<std::string> scenarios = {"all"};
  for (const StressScenario& each : stress_scenarios()) {
    if (belongs(each, kind)) scenarios.emplace_back(each.name);
  }
  verb.option("--device", options->device,
              "Device to work on: cpu, host:N or cuda:N (default: the config's, or host:0)");
  verb.option("--threads", options->threads, "Threads (default 4)").between(1, 256);
  verb.option("--streams", options->streams, "Streams that the threads share (default 4)")
      .between(1, kMostStressStreams);
  verb.option("--seconds", options->seconds, "Time after which no new program starts (default 10)")
      .not_negative();
  verb.option("--seed", options->seed, "Of the first program (default 0)");
  verb.option("--scenario", options->scenario,
              kind == StressKind::kAllocator
                  ? "A known failure of allocators, scaled down, instead of random programs; or all"
                  : "A known failure between streams, scaled down, instead of random programs; or "
                    "all")
      .one_of(scenarios);
  verb.option("--inject", options->fault,
              "Make this mistake in the programs: exit status 0 if it is noticed, 1 if not")
      .one_of({"lost-event", "early-reuse", "flipped-byte", "late-copy"});
  verb.flag("--json", options->json, "One JSON object a line instead of text");
  verb.option("--config", options->config,
              "Config file (.txtpb) with the device and the allocator's options (memory)");
  verb.runs([options] { run_verb(*options); });
}

}  // namespace

void add_stress(const Verb& app) {
  const Verb stress = app.verb("stress", "Try to break memory and streams with random programs");
  stress.requires_verb();
  add_kind(stress, "allocator", StressKind::kAllocator,
           "Blocks of all sizes come, are used on several streams, and go");
  add_kind(stress, "streams", StressKind::kStreams,
           "Blocks stay, and kernels, copies and events go from stream to stream");
}

}  // namespace lockstep::launcher
