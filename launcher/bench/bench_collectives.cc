#include "launcher/bench/bench_collectives.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/json_line.h"
#include "core/base/log_text.h"
#include "core/ops/factory/factory.h"
#include "dist/group/agreement.h"
#include "dist/group/thread_group.h"
#include "launcher/bench/busy_time.h"
#include "launcher/bench/collective_problem.h"
#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "launcher/ranks.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

namespace {

using dist::ProcessGroup;

struct Options {
  std::vector<std::string> operations = {"all_reduce"};
  std::string dtype = "float32";
  std::string reduction = "sum";
  int64_t smallest = 1024;
  int64_t largest = int64_t{64} << 20;
  int64_t factor = 4;
  int64_t increment = 0;   ///< bytes from one size to the next; 0: by `factor`
  int64_t iterations = 0;  ///< timed; 0: for `seconds`
  int64_t warmup = 5;
  int64_t checks = 1;  ///< times that results are compared; 0: never
  double seconds = 0.3;
  int ranks = 2;
  int parallel_init = 0;
  bool json = false;
};

/// The sizes to measure, in bytes.
std::vector<int64_t> sizes_of(const Options& options) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = options.smallest; bytes <= options.largest;
       bytes = options.increment > 0 ? bytes + options.increment : bytes * options.factor) {
    sizes.push_back(bytes);
  }
  return sizes;
}

struct Row {
  int64_t bytes = 0;
  int64_t count = 0;       ///< elements
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

int64_t wrong_elements(const ProcessGroup& group, const CollectiveProblem& problem) {
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
Row measure(ProcessGroup& group, const CollectiveProblem& problem, const Options& options,
            bool ranks_are_threads) {
  Row row;
  row.bytes = static_cast<int64_t>(std::max(problem.input.nbytes(), problem.output.nbytes()));
  row.count = std::max(problem.input.numel(), problem.output.numel());
  for (int64_t i = 0; i < options.checks; ++i) {
    row.wrong += static_cast<int64_t>(
        sum_over_ranks(group, static_cast<double>(wrong_elements(group, problem))));
  }
  // Repeated sums would overflow; zeroes do not change.
  problem.input.zero_();

  using Clock = std::chrono::steady_clock;
  const auto run = [&](int64_t times) {
    group.barrier().wait();
    const auto start = Clock::now();
    for (int64_t i = 0; i < times; ++i) problem.start().wait();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const int64_t trials = std::max<int64_t>(options.warmup, 1);
  const double trial = largest_of_ranks(group, run(trials) / static_cast<double>(trials));
  const int64_t times =
      options.iterations > 0
          ? options.iterations
          : static_cast<int64_t>(std::clamp(options.seconds / trial, 3.0, 20'000.0));
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

/// One line of the table: an operation at one size, out of place and in place.
struct Line {
  const CollectiveKind* kind;
  std::string reduction;  ///< "none" for operations that do not reduce
  int ranks;
  std::optional<Row> out_of_place;
  std::optional<Row> in_place;
};

double algorithm_bandwidth(const Row& row) {
  return static_cast<double>(row.bytes) * 1e-9 / row.seconds;
}

double bus_bandwidth(const Line& line, const Row& row) {
  return algorithm_bandwidth(row) * line.kind->bus_factor(line.ranks);
}

void print_json(const Line& line, const Row& row, bool in_place, const Options& options) {
  const double gigabytes = static_cast<double>(row.bytes) * 1e-9;
  fmt::print("{}\n", JsonLine()
                         .add("op", line.kind->name)
                         .add("dtype", options.dtype)
                         .add("redop", line.reduction)
                         .add("in_place", in_place)
                         .add("ranks", static_cast<int64_t>(line.ranks))
                         .add("bytes", row.bytes)
                         .add("count", row.count)
                         .add("time_us", row.seconds * 1e6)
                         .add("algbw_gbs", algorithm_bandwidth(row))
                         .add("busbw_gbs", bus_bandwidth(line, row))
                         .add("cpu_s_per_gb", row.cpu_seconds / gigabytes)
                         .add("machine_cpu_s_per_gb", row.machine_cpu_seconds / gigabytes)
                         .add("wrong", row.wrong)
                         .text());
}

std::string columns(const Line& line, const std::optional<Row>& row, const Options& options) {
  if (!row) return fmt::format(" {:>10} {:>8} {:>8} {:>6}", "-", "-", "-", "-");
  return fmt::format(" {:>10.1f} {:>8.3f} {:>8.3f} {:>6}", row->seconds * 1e6,
                     algorithm_bandwidth(*row), bus_bandwidth(line, *row),
                     options.checks > 0 ? fmt::format("{}", row->wrong) : "N/A");
}

void print(const Line& line, const Options& options) {
  if (options.json) {
    // In place last, as the only form of programs that read one line a size.
    if (line.out_of_place) print_json(line, *line.out_of_place, false, options);
    if (line.in_place) print_json(line, *line.in_place, true, options);
  } else {
    const Row& any = line.out_of_place ? *line.out_of_place : *line.in_place;
    fmt::print("{:<15} {:>12} {:>12} {:>6}{}{}\n", line.kind->name, any.bytes, any.count,
               line.reduction, columns(line, line.out_of_place, options),
               columns(line, line.in_place, options));
  }
  std::fflush(stdout);
}

void print_head(const ProcessGroup& group, const Options& options) {
  constexpr const char* kForm = " {:>10} {:>8} {:>8} {:>6}";
  const std::string form = fmt::format(fmt::runtime(kForm), "time_us", "algbw", "busbw", "wrong");
  fmt::print("# {} ranks, {} group, {}; bandwidths in GB/s\n{:<48} {:^35} {:^35}\n", group.size(),
             group.backend(), options.dtype, "#", "out of place", "in place");
  fmt::print("{:<15} {:>12} {:>12} {:>6}{}{}\n", "op", "bytes", "count", "redop", form, form);
}

/// What all measurements came to.
struct Total {
  int64_t wrong = 0;
  double bus_bandwidths = 0;
  int64_t rows = 0;

  void add(const Line& line) {
    for (const std::optional<Row>& row : {line.out_of_place, line.in_place}) {
      if (!row) continue;
      wrong += row->wrong;
      bus_bandwidths += bus_bandwidth(line, *row);
      ++rows;
    }
  }
};

/// Runs all measurements and returns the number of wrong elements.
int64_t bench(ProcessGroup& group, const Options& options, bool ranks_are_threads) {
  const bool prints = group.rank() == 0;
  if (prints && !options.json) print_head(group, options);
  const DType dtype = *parse_dtype(options.dtype);
  const NamedReduction reduction = named_reduction(options.reduction, group.size());
  Total total;
  for (const std::string& name : options.operations) {
    const CollectiveKind& kind = find_collective(name);
    for (const int64_t bytes : sizes_of(options)) {
      const int64_t count = std::max<int64_t>(bytes / static_cast<int64_t>(size_of(dtype)), 1);
      const auto measured = [&](bool in_place) -> std::optional<Row> {
        const auto problem = kind.make(group, count, dtype, reduction, in_place);
        if (!problem) return std::nullopt;
        return measure(group, *problem, options, ranks_are_threads);
      };
      Line line{.kind = &kind,
                .reduction = kind.reduces ? reduction.name : "none",
                .ranks = group.size(),
                .out_of_place = measured(false),
                .in_place = measured(true)};
      total.add(line);
      if (prints) print(line, options);
    }
  }
  if (prints && !options.json) {
    fmt::print("# wrong elements: {}\n# average bus bandwidth: {:.4f} GB/s\n",
               options.checks > 0 ? fmt::format("{}", total.wrong) : "not checked",
               total.bus_bandwidths / static_cast<double>(std::max<int64_t>(total.rows, 1)));
  }
  return total.wrong;
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
  int64_t wrong = 0;
  tell_errors(ranks, [&] {
    wrong = ranks.group ? bench(*ranks.group, options, false) : bench_threads(options);
  });
  if (wrong == 0) return;
  if (ranks.leads()) {
    write_log(stderr, fmt::format("[bench] {} elements of the results are wrong.\n", wrong));
  }
  throw ExitStatus(kFailure);
}

}  // namespace

void add_bench_collectives(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb = bench.verb(
      "collectives", "How fast ranks exchange data: started by mpirun, or ranks that are threads");
  verb.option("--op", options->operations, "Which (default all_reduce); all of them: --op all")
      .separated_by(',')
      .check([names = collective_names()](const std::string& text) {
        if (text == "all" || std::ranges::find(names, text) != names.end()) return std::string();
        return fmt::format("expected all, {}", fmt::join(names, ", "));
      });
  verb.option("-d,--dtype,--datatype", options->dtype, "Element type (default float32)")
      .one_of({"float32", "float64", "bfloat16", "float16", "int32", "int64", "int8", "uint8",
               "float", "double", "half"});
  verb.option("-o,--redop", options->reduction, "How values are combined (default sum)")
      .one_of(reduction_names());
  verb.option("-b,--smallest,--minbytes", options->smallest, "Bytes to begin with (default 1024)")
      .positive()
      .binary_size();
  verb.option("-e,--largest,--maxbytes", options->largest, "Bytes to end with (default 64 MiB)")
      .binary_size()
      .positive();
  const Option factor = verb.option("-f,--factor,--stepfactor", options->factor,
                                    "From one size to the next, as a factor (default 4)")
                            .between(2, 1 << 20);
  const Option increment = verb.option("-i,--increment,--stepbytes", options->increment,
                                       "From one size to the next, in bytes, instead of -f")
                               .positive()
                               .binary_size();
  verb.option("-n,--iters", options->iterations,
              "Timed operations for each size (default: as many as take --seconds)")
      .between(1, 1 << 30);
  verb.option("-w,--warmup-iters", options->warmup, "Operations before those (default 5)")
      .between(0, 1 << 30);
  verb.option("-c,--check", options->checks,
              "Times that results are compared; 0: never (default 1)")
      .between(0, 1 << 20);
  verb.option("--seconds", options->seconds, "For each size (default 0.3)").positive();
  verb.option("-g,--ranks,--ngpus", options->ranks,
              "Ranks, as threads, where no launcher started any (default 2)")
      .between(1, 64);
  verb.option("-p,--parallel-init", options->parallel_init,
              "nccl-tests': ranks always start in parallel; has no effect")
      .between(0, 1);
  verb.flag("--json", options->json, "One JSON object a line");
  verb.runs([options, factor, increment] {
    Options chosen = *options;
    if (std::ranges::find(chosen.operations, "all") != chosen.operations.end()) {
      chosen.operations = collective_names();
    }
    if (chosen.smallest > chosen.largest) {
      throw UsageError(fmt::format("--largest: expected at least --smallest, {}, got {}",
                                   chosen.smallest, chosen.largest));
    }
    if (factor.given() && increment.given()) {
      throw UsageError("--increment: expected one of -f and -i, got both");
    }
    if (chosen.reduction == "avg" && (chosen.dtype.starts_with("int") || chosen.dtype == "uint8")) {
      throw UsageError(fmt::format("--redop: expected another than avg for {}", chosen.dtype));
    }
    constexpr std::array<std::pair<std::string_view, const char*>, 3> kShort = {
        {{"float", "float32"}, {"double", "float64"}, {"half", "float16"}}};
    for (const auto& [shorter, name] : kShort) {
      if (chosen.dtype == shorter) chosen.dtype = name;
    }
    run_bench(chosen);
  });
}

}  // namespace lockstep::launcher
