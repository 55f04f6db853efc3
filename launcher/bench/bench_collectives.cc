#include "launcher/bench/bench_collectives.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/json_line.h"
#include "core/ops/factory/factory.h"
#include "dist/group/agreement.h"
#include "dist/group/thread_group.h"
#include "launcher/bench/busy_time.h"
#include "launcher/command_line.h"
#include "launcher/ranks.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

namespace {

using dist::ProcessGroup;

struct Options {
  std::vector<std::string> operations = {"all_reduce"};
  std::string dtype = "float32";
  int64_t smallest = 1024;
  int64_t largest = int64_t{64} << 20;
  int64_t factor = 4;
  double seconds = 0.3;
  int ranks = 2;
  bool json = false;
};

/// Tensors of one operation on one rank, and their expected contents afterwards.
struct Problem {
  Tensor input;
  Tensor output;  ///< may be `input`
  std::function<dist::Work()> start;
  /// Expected value of an element of `output` if `input` was filled with rank + 1.
  std::function<double(int64_t element)> expected;
  bool is_written = true;  ///< whether the operation writes `output` on this rank
};

struct Kind {
  const char* name;
  /// As in nccl-tests: busbw is algbw times this, so that it is comparable with a link's speed.
  double (*bus_factor)(double ranks);
  Problem (*make)(ProcessGroup& group, int64_t count, DType dtype);
};

double all_but_one(double n) { return (n - 1) / n; }
double sum_of_ranks(const ProcessGroup& group) { return group.size() * (group.size() + 1) / 2.0; }

Problem make_all_reduce(ProcessGroup& group, int64_t count, DType dtype) {
  const Tensor tensor = empty({count}, dtype);
  return {tensor, tensor, [&group, tensor] { return group.all_reduce(tensor); },
          [&group](int64_t) { return sum_of_ranks(group); }};
}

Problem make_reduce(ProcessGroup& group, int64_t count, DType dtype) {
  const Tensor tensor = empty({count}, dtype);
  return {tensor, tensor, [&group, tensor] { return group.reduce(tensor, 0); },
          [&group](int64_t) { return sum_of_ranks(group); }, group.rank() == 0};
}

Problem make_broadcast(ProcessGroup& group, int64_t count, DType dtype) {
  const Tensor tensor = empty({count}, dtype);
  return {tensor, tensor, [&group, tensor] { return group.broadcast(tensor, 0); },
          [](int64_t) { return 1.0; }};
}

Problem make_reduce_scatter(ProcessGroup& group, int64_t count, DType dtype) {
  const int64_t part = std::max<int64_t>(count / group.size(), 1);
  const Tensor input = empty({part * group.size()}, dtype);
  const Tensor output = empty({part}, dtype);
  return {input, output, [&group, input, output] { return group.reduce_scatter(output, input); },
          [&group](int64_t) { return sum_of_ranks(group); }};
}

Problem make_all_gather(ProcessGroup& group, int64_t count, DType dtype) {
  const int64_t part = std::max<int64_t>(count / group.size(), 1);
  const Tensor input = empty({part}, dtype);
  const Tensor output = empty({part * group.size()}, dtype);
  return {input, output, [&group, input, output] { return group.all_gather(output, input); },
          [part](int64_t i) { return static_cast<double>(i / part + 1); }};
}

Problem make_all_to_all(ProcessGroup& group, int64_t count, DType dtype) {
  const int64_t part = std::max<int64_t>(count / group.size(), 1);
  const Tensor input = empty({part * group.size()}, dtype);
  const Tensor output = empty({part * group.size()}, dtype);
  return {input, output, [&group, input, output] { return group.all_to_all(output, input); },
          [part](int64_t i) { return static_cast<double>(i / part + 1); }};
}

constexpr auto kKinds = std::to_array<Kind>({
    {"all_reduce", [](double n) { return 2 * (n - 1) / n; }, make_all_reduce},
    {"reduce_scatter", all_but_one, make_reduce_scatter},
    {"all_gather", all_but_one, make_all_gather},
    {"all_to_all", all_but_one, make_all_to_all},
    {"broadcast", [](double) { return 1.0; }, make_broadcast},
    {"reduce", [](double) { return 1.0; }, make_reduce},
});

const Kind& find_kind(const std::string& name) {
  return *std::ranges::find(kKinds, name, [](const Kind& kind) { return std::string(kind.name); });
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

struct Row {
  int64_t bytes = 0;
  double seconds = 0;      ///< time of one operation on the slowest rank
  double cpu_seconds = 0;  ///< CPU time per operation and rank
  /// CPU time per operation and rank of everything that ran on the ranks' machines.
  double machine_cpu_seconds = 0;
  int64_t wrong = 0;  ///< wrong elements on all ranks
};

double cpu_seconds() {
  rusage usage{};
  LS_CHECK(getrusage(RUSAGE_SELF, &usage) == 0, InternalError, "[bench] getrusage failed.");
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double largest_of_ranks(ProcessGroup& group, double value) {
  dist::largest_of(group, {&value, 1});
  return value;
}

double sum_over_ranks(ProcessGroup& group, double value) {
  const Tensor tensor = empty({1}, DType::kF64).fill_(value);
  group.all_reduce(tensor).wait();
  return tensor.data<double>()[0];
}

/// Sums a value over machines, each counted once: ranks on one machine measured the same.
double sum_over_machines(ProcessGroup& group, double value) {
  const Tensor own = empty({2}, DType::kI64);
  const Tensor all = empty({group.size(), 2}, DType::kI64);
  own.data<int64_t>()[0] = kernel_identity();
  own.data<int64_t>()[1] = std::bit_cast<int64_t>(value);
  group.all_gather(all, own).wait();
  std::set<int64_t> seen;
  double sum = 0;
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    const int64_t* const told = all.data<int64_t>() + 2 * rank;
    if (seen.insert(told[0]).second) sum += std::bit_cast<double>(told[1]);
  }
  return sum;
}

int64_t wrong_elements(const ProcessGroup& group, const Problem& problem) {
  problem.input.fill_(group.rank() + 1);
  problem.start().wait();
  if (!problem.is_written) return 0;
  const Tensor result = problem.output.to(DType::kF64);
  int64_t wrong = 0;
  for (int64_t i = 0; i < result.numel(); ++i) {
    wrong += result.data<double>()[i] != problem.expected(i) ? 1 : 0;
  }
  return wrong;
}

/// Measures one operation. `ranks_are_threads`: all ranks share one process, so that rusage is the
/// sum over them.
Row measure(ProcessGroup& group, const Kind& kind, int64_t bytes, const Options& options,
            bool ranks_are_threads) {
  const DType dtype = *parse_dtype(options.dtype);
  const int64_t count = std::max<int64_t>(bytes / static_cast<int64_t>(size_of(dtype)), 1);
  const Problem problem = kind.make(group, count, dtype);
  Row row;
  row.bytes = static_cast<int64_t>(std::max(problem.input.nbytes(), problem.output.nbytes()));
  row.wrong = static_cast<int64_t>(
      sum_over_ranks(group, static_cast<double>(wrong_elements(group, problem))));
  // Repeated sums would overflow; zeroes do not change.
  problem.input.zero_();

  using Clock = std::chrono::steady_clock;
  const auto run = [&](int64_t times) {
    group.barrier().wait();
    const auto start = Clock::now();
    for (int64_t i = 0; i < times; ++i) problem.start().wait();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const double trial = largest_of_ranks(group, run(3) / 3);
  const auto times = static_cast<int64_t>(std::clamp(options.seconds / trial, 3.0, 20'000.0));
  const double cpu_before = cpu_seconds();
  const double busy_before = busy_seconds();
  row.seconds = largest_of_ranks(group, run(times)) / static_cast<double>(times);
  const double cpu = cpu_seconds() - cpu_before;
  const double busy = busy_seconds() - busy_before;
  const auto parts = static_cast<double>(times * group.size());
  row.cpu_seconds = (ranks_are_threads ? cpu : sum_over_ranks(group, cpu)) / parts;
  row.machine_cpu_seconds = sum_over_machines(group, busy) / parts;
  return row;
}

void print(const Kind& kind, const Row& row, int ranks, const Options& options) {
  const double gigabytes = static_cast<double>(row.bytes) * 1e-9;
  const double algorithm = gigabytes / row.seconds;
  const double bus = algorithm * kind.bus_factor(ranks);
  if (options.json) {
    fmt::print("{}\n", JsonLine()
                           .add("op", kind.name)
                           .add("dtype", options.dtype)
                           .add("ranks", static_cast<int64_t>(ranks))
                           .add("bytes", row.bytes)
                           .add("time_us", row.seconds * 1e6)
                           .add("algbw_gbs", algorithm)
                           .add("busbw_gbs", bus)
                           .add("cpu_s_per_gb", row.cpu_seconds / gigabytes)
                           .add("machine_cpu_s_per_gb", row.machine_cpu_seconds / gigabytes)
                           .add("wrong", row.wrong)
                           .text());
  } else {
    fmt::print("{:<15} {:>12} {:>12.1f} {:>10.3f} {:>10.3f} {:>13.3f} {:>7}\n", kind.name,
               row.bytes, row.seconds * 1e6, algorithm, bus, row.cpu_seconds / gigabytes,
               row.wrong);
  }
  std::fflush(stdout);
}

/// Runs all measurements and returns the number of wrong elements.
int64_t bench(ProcessGroup& group, const Options& options, bool ranks_are_threads) {
  const bool prints = group.rank() == 0;
  if (prints && !options.json) {
    fmt::print("{} ranks, {} group, {}\n{:<15} {:>12} {:>12} {:>10} {:>10} {:>13} {:>7}\n",
               group.size(), group.backend(), options.dtype, "op", "bytes", "time_us", "algbw_gbs",
               "busbw_gbs", "cpu_s_per_gb", "wrong");
  }
  int64_t wrong = 0;
  for (const std::string& name : options.operations) {
    const Kind& kind = find_kind(name);
    for (int64_t bytes = options.smallest; bytes <= options.largest; bytes *= options.factor) {
      const Row row = measure(group, kind, bytes, options, ranks_are_threads);
      if (prints) print(kind, row, group.size(), options);
      wrong += row.wrong;
    }
  }
  return wrong;
}

int64_t bench_threads(const Options& options) {
  std::vector<int64_t> wrong(static_cast<size_t>(options.ranks));
  const auto errors = dist::run_thread_ranks(options.ranks, [&](ProcessGroup& group) {
    wrong[static_cast<size_t>(group.rank())] = bench(group, options, true);
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return wrong[0];
}

void run_bench(const Options& options) {
  const Ranks ranks = join_ranks();
  tell_errors(ranks, [&] {
    const int64_t wrong =
        ranks.group ? bench(*ranks.group, options, false) : bench_threads(options);
    LS_CHECK(wrong == 0, InternalError, "[bench] {} elements of the results are wrong.", wrong);
  });
}

}  // namespace

void add_bench_collectives(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb = bench.verb(
      "collectives", "How fast ranks exchange data: started by mpirun, or ranks that are threads");
  verb.option("--op", options->operations, "Which (default all_reduce); all of them: --op all")
      .separated_by(',')
      .check([names = kind_names()](const std::string& text) {
        if (text == "all" || std::ranges::find(names, text) != names.end()) return std::string();
        return fmt::format("expected all, {}", fmt::join(names, ", "));
      });
  verb.option("--dtype", options->dtype, "Element type (default float32)")
      .one_of({"float32", "float64", "bfloat16", "float16", "int32", "int64"});
  verb.option("-b,--smallest", options->smallest, "Bytes to begin with (default 1024)")
      .positive()
      .binary_size();
  verb.option("-e,--largest", options->largest, "Bytes to end with (default 64 MiB)")
      .binary_size()
      .positive();
  verb.option("-f,--factor", options->factor, "From one size to the next (default 4)")
      .between(2, 1 << 20);
  verb.option("--seconds", options->seconds, "For each size (default 0.3)").positive();
  verb.option("--ranks", options->ranks, "Threads, where no launcher started ranks (default 2)")
      .between(1, 64);
  verb.flag("--json", options->json, "One JSON object a line");
  verb.runs([options] {
    Options chosen = *options;
    if (std::ranges::find(chosen.operations, "all") != chosen.operations.end()) {
      chosen.operations = kind_names();
    }
    run_bench(chosen);
  });
}

}  // namespace lockstep::launcher
