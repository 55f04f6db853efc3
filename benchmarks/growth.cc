// How the cost of work grows with its size: each case is run at four sizes, each twice the one
// before, and must not grow faster than the size (exponent 1).

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "benchmarks/growth/growth_case.h"
#include "launcher/command_line.h"

namespace lockstep {
namespace {

using growth::Cost;
using growth::GrowthCase;

constexpr double kMostExponent = 1.15;
constexpr int kSizes = 4;

/// Runs a case at one size in a process of its own.
Cost measure(const GrowthCase& each, int64_t size) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child == 0) {
    growth::Meter meter;
    meter.start();
    each.run(size, meter);
    meter.stop();
    const Cost& cost = meter.cost();
    const bool told = write(pipe_ends[1], &cost, sizeof cost) == sizeof cost;
    _exit(told ? 0 : 1);
  }
  close(pipe_ends[1]);
  Cost cost;
  const bool told = read(pipe_ends[0], &cost, sizeof cost) == sizeof cost;
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!told)
    throw std::runtime_error(fmt::format("{} of {} {} failed", each.name, size, each.unit));
  return cost;
}

/// The power of the size to which the costs grow: the slope of the line through their logarithms
/// with the least squares.
double exponent(const std::array<double, kSizes>& costs) {
  double slope = 0, squares = 0;
  for (int i = 0; i < kSizes; ++i) {
    const double place = i - (kSizes - 1) / 2.0;
    slope += place * std::log2(std::max(costs[static_cast<size_t>(i)], 1e-9));
    squares += place * place;
  }
  return slope / squares;
}

struct Report {
  std::FILE* table;
  nlohmann::ordered_json figures;
};

/// Prints a line for the time or the memory of a case. Returns whether it grows as it may.
bool report(const GrowthCase& each, const char* what, const char* unit,
            const std::array<double, kSizes>& costs, Report& to) {
  const double power = exponent(costs);
  const bool good = power <= kMostExponent;
  to.figures[fmt::format("{}_{}_exponent", each.name, what)] = power;
  to.figures[fmt::format("{}_{}", each.name, what)] = costs;
  fmt::print(to.table,
             "{:<16} {:>9} {:<30} {:<6} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:<4} {:5.2f}{}\n",
             each.name, each.first, each.unit, what, costs[0], costs[1], costs[2], costs[3], unit,
             power, good ? "" : "  TOO STEEP");
  return good;
}

bool run_case(const GrowthCase& each, int rounds, Report& to) {
  std::array<double, kSizes> seconds{}, mebibytes{};
  for (size_t i = 0; i < kSizes; ++i) {
    seconds[i] = mebibytes[i] = std::numeric_limits<double>::max();
    for (int round = 0; round < rounds; ++round) {
      const Cost cost = measure(each, each.first << i);
      seconds[i] = std::min(seconds[i], cost.seconds);
      mebibytes[i] = std::min(mebibytes[i], cost.bytes / (1 << 20));
    }
  }
  const bool in_time = report(each, "time", "s", seconds, to);
  return (!each.has_bytes || report(each, "memory", "MiB", mebibytes, to)) && in_time;
}

int run(int argc, char** argv) {
  int rounds = 2;
  bool json = false;
  std::string only;
  launcher::CommandLine line("How the cost of work grows with its size");
  line.option("--rounds", rounds, "The least of so many measurements counts").positive();
  line.option("--only", only, "Only the cases whose names begin so");
  line.flag("--json", json, "Print an object; the table goes to standard error");
  if (const auto status = line.parse(argc, argv)) return *status;

  Report report{json ? stderr : stdout, {}};
  bool good = true;
  for (const auto cases :
       {growth::data_cases, growth::tensor_cases, growth::memory_cases, growth::graph_cases}) {
    for (const GrowthCase& each : cases()) {
      if (each.name.starts_with(only)) good = run_case(each, rounds, report) && good;
    }
  }
  if (json) fmt::print("{}\n", report.figures.dump());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
