// ops_conformance DIR [--op NAME] [--json]: runs recorded calls of operators and compares the
// answers.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/conformance/run.h"

namespace {

using lockstep::conformance::Failure;
using lockstep::conformance::Report;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

void print_lines(const Report& report) {
  for (const Failure& failure : report.failures) {
    fmt::print("{}: {} of {} cases failed, the first is case {}: {}\n", failure.op, failure.failed,
               failure.cases, failure.first_case, failure.message);
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
  const nlohmann::json object = {{"passed", report.passed},
                                 {"failed", report.failed},
                                 {"skipped", report.skipped},
                                 {"failures", failures}};
  fmt::print("{}\n", object.dump(2));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs recorded operator calls and compares the answers.", "ops_conformance");
  std::string directory;
  std::string op;
  bool json = false;
  app.add_option("DIR", directory, "Folder of <op>.json and <op>.safetensors")->required();
  app.add_option("--op", op, "Only this operator, such as add.Tensor");
  app.add_flag("--json", json, "Print an object instead of lines");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  try {
    const Report report = lockstep::conformance::run_directory(directory, op);
    json ? print_json(report) : print_lines(report);
    return report.failed == 0 ? 0 : kFailed;
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "{}: {}\n", error.kind(), error.what());
    return kUsage;
  }
}
