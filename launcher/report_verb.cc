#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "core/base/files/atomic_file.h"
#include "launcher/command_line.h"
#include "launcher/page_server.h"
#include "launcher/verbs.h"
#include "train/page/run_page.h"

namespace lockstep::launcher {

namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output;
  bool serve = false;
  int64_t port = 0;
  int64_t every = 10;
};

/// report.html in the run's directory; for several runs, or a metrics file, in the current one.
std::string output_of(const ReportOptions& options) {
  if (!options.output.empty()) return options.output;
  std::error_code failed;
  const std::filesystem::path& run = options.runs.front();
  const bool is_one = options.runs.size() == 1 && std::filesystem::is_directory(run, failed);
  return is_one ? (run / "report.html").string() : "report.html";
}

std::string page_of(const std::vector<std::string>& paths) {
  std::vector<train::RunRecord> runs;
  for (const std::string& path : paths) {
    runs.push_back(train::read_run(path, train::page_options(paths.size())));
  }
  return train::run_page(runs);
}

void write_page(const ReportOptions& options) {
  const std::string output = output_of(options);
  write_text(output, page_of(options.runs));
  fmt::print("wrote {}\n", output);
}

/// Until a signal ends the process: it has nothing to save.
void serve_page(const ReportOptions& options) {
  page_of(options.runs);  // an error now is better told here than in a browser
  PageServer server(static_cast<uint16_t>(options.port), options.every);
  fmt::print(
      "{}\nEach load reads the runs anew{}. Ctrl-C ends this.\n", server.address(),
      options.every > 0 ? fmt::format(", which a browser does every {} s", options.every) : "");
  std::fflush(stdout);
  for (;;) server.answer_one([&] { return page_of(options.runs); });
}

}  // namespace

void add_report(const Verb& app) {
  auto options = std::make_shared<ReportOptions>();
  const Verb verb = app.verb(
      "report", "Write a page about runs: curves, samples, events, config, machine, in one file");
  verb.option("run", options->runs, "Run directories, or metrics.jsonl files").required();
  verb.option("-o,--output", options->output,
              "The page (default: report.html in the run's directory, or here for several runs)");
  const Option serve = verb.flag(
      "--serve", options->serve,
      "Show the page to a browser on this machine instead, at an address that is printed");
  verb.option("--port", options->port, "Port of that address (default: any that is free)")
      .between(1, 65535)
      .needs(serve);
  verb.option("--every", options->every,
              "Seconds after which the browser loads the page again; 0: never (default: 10)")
      .between(0, 86400)
      .needs(serve);
  verb.runs([options] { options->serve ? serve_page(*options) : write_page(*options); });
}

}  // namespace lockstep::launcher
