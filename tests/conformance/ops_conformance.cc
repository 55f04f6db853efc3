// ops_conformance DIR [--op NAME] [--device DEVICE] [--double-backward] [--compiled]
// [--json]: runs recorded calls of operators and compares their results.

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <ranges>

#include "core/base/error.h"
#include "launcher/command_line.h"
#include "tests/conformance/run.h"

namespace {

using lockstep::conformance::Failure;
using lockstep::conformance::Report;
using lockstep::conformance::RunOptions;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

size_t case_count(const std::map<std::string, size_t>& operators) {
  size_t count = 0;
  for (const auto& [op, cases] : operators) count += cases;
  return count;
}

void print_lines(const Report& report) {
  for (const Failure& failure : report.failures) {
    fmt::print("{}: {} of {} cases failed, the first is case {}: {}\n", failure.op, failure.failed,
               failure.cases, failure.first_case, failure.message);
  }
  for (const auto& [reason, operators] : report.reasons) {
    fmt::print("{} {}: {}\n", case_count(operators), reason,
               fmt::join(std::views::keys(operators), ", "));
  }
  if (!report.fallbacks.empty()) {
    int64_t calls = 0;
    for (const auto& [op, of_it] : report.fallbacks) calls += of_it;
    fmt::print("{} calls ran on the cpu: {}\n", calls,
               fmt::join(std::views::keys(report.fallbacks), ", "));
  }
  fmt::print("{} passed, {} failed, {} skipped\n", report.passed, report.failed, report.skipped);
}

void print_json(const Report& report) {
  nlohmann::json failures = nlohmann::json::array();
  for (const Failure& failure : report.failures) {
    failures.push_back({{"op", failure.op},
                        {"cases", failure.cases},
                        {"failed", failure.failed},
                        {"first_case", failure.first_case},
                        {"message", failure.message}});
  }
  const nlohmann::json object = {{"passed", report.passed},   {"failed", report.failed},
                                 {"skipped", report.skipped}, {"failures", failures},
                                 {"reasons", report.reasons}, {"fallbacks", report.fallbacks}};
  fmt::print("{}\n", object.dump(2));
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::launcher::CommandLine line("Runs recorded operator calls and compares the answers.",
                                       "ops_conformance");
  std::string directory;
  RunOptions options;
  std::string device = "cpu";
  bool json = false;
  line.option("DIR", directory, "Folder of <op>.json and <op>.safetensors").required();
  line.option("--op", options.only, "Only this operator, such as add.Tensor");
  line.option("--device", device,
              "cpu, host:0, cuda:0, ...; meta: shapes, strides and dtypes alone");
  line.flag("--double-backward", options.double_backward,
            "Check second derivatives in float64 too");
  line.flag("--compiled", options.compiled, "Run each call as a compiled function, too");
  line.flag("--json", json, "Print an object instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  try {
    options.device = lockstep::parse_device(device);
    const Report report = lockstep::conformance::run_directory(directory, options);
    json ? print_json(report) : print_lines(report);
    return report.failed == 0 ? 0 : kFailed;
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "{}: {}\n", error.kind(), error.what());
    return kUsage;
  }
}
