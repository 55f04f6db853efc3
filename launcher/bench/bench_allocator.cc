#include "launcher/bench/bench_allocator.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>

#include "core/base/json_line.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/trace_replay.h"
#include "launcher/command_line.h"
#include "launcher/driver_memory.h"

namespace lockstep::launcher {

namespace {

struct Options {
  std::string trace;
  std::string device = "host:0";
  std::string policy = "expandable";
  bool json = false;
};

void report(const Options& options, const ReplayResult& result, double ns_per_pair) {
  if (options.json) {
    fmt::print("{}\n",
               JsonLine()
                   .add("trace", options.trace)
                   .add("device", options.device)
                   .add("policy", options.policy)
                   .add("peak_live_bytes", result.peak_live_bytes)
                   .add("peak_reserved_bytes", result.peak_reserved_bytes)
                   .add("ratio", result.ratio())
                   .add("driver_calls", result.driver_calls)
                   .add("driver_calls_after_first_step", result.driver_calls_after_first_step)
                   .add("ns_per_pair", ns_per_pair)
                   .text());
    return;
  }
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; };
  fmt::print("{} on {}, {}\n", options.trace, options.device, options.policy);
  fmt::print("peak live       {:10.1f} MiB\n", mib(result.peak_live_bytes));
  fmt::print("peak reserved   {:10.1f} MiB, {:.3f} x live\n", mib(result.peak_reserved_bytes),
             result.ratio());
  fmt::print("driver calls    {:10}, {} of them after the first step\n", result.driver_calls,
             result.driver_calls_after_first_step);
  fmt::print("allocate + free {:10.1f} ns\n", ns_per_pair);
}

void run_bench(const Options& options) {
  const AllocationTrace trace = read_allocation_trace(options.trace);
  const Device device = parse_device(options.device);
  AllocatorOptions policy;
  policy.expandable_segments = options.policy != "native";
  CachingAllocator allocator(device, driver_memory(device), policy);
  allocator.set_planned(options.policy == "planned");
  const Stream stream = default_stream(device);
  const auto mark_step = [&] { allocator.mark_step(stream); };

  ReplayResult result = replay(trace, allocator, stream, mark_step);
  // Includes memory that was reserved only briefly, within a call.
  result.peak_reserved_bytes =
      std::max(result.peak_reserved_bytes, allocator.memory_stats().reserved_bytes.all.peak);
  report(options, result, time_replay(trace, allocator, stream, mark_step));
}

}  // namespace

void add_bench_allocator(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      bench.verb("allocator", "Replay a run's allocations: bytes reserved, driver calls, time");
  verb.option("--trace", options->trace, "File that `lockstep train --record-allocations` wrote")
      .required();
  verb.option("--device", options->device, "Whose memory is used (default host:0)");
  verb.option("--policy", options->policy,
              "Plain segments, expandable ones, or expandable ones and a plan of each step "
              "(default expandable)")
      .one_of({"native", "expandable", "planned"});
  verb.flag("--json", options->json, "One JSON object instead of a table");
  verb.runs([options] { run_bench(*options); });
}

}  // namespace lockstep::launcher
