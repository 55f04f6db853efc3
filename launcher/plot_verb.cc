#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "launcher/command_line.h"
#include "launcher/picture.h"
#include "launcher/verbs.h"
#include "train/report/braille_chart.h"
#include "train/report/memory_chart.h"
#include "train/report/progress.h"
#include "train/report/svg_chart.h"

namespace lockstep::launcher {

namespace {

struct PlotOptions {
  std::vector<std::string> runs;
  std::string output;
  bool log_x = false;
  bool memory = false;
  std::string by = "operator";
};

/// Name of a run: that of its folder, or of the folder that holds a metrics file.
std::string run_name(const std::string& run) {
  std::filesystem::path path = std::filesystem::absolute(run).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == "metrics.jsonl") path = path.parent_path();
  return path.filename().string();
}

void run_plot(const PlotOptions& options) {
  std::vector<train::Curve> curves;
  for (size_t i = 0; i < options.runs.size(); ++i) {
    const std::string& run = options.runs[i];
    for (train::Curve& curve :
         train::loss_curves(run_name(run), static_cast<int>(i), train::read_metrics(run))) {
      curves.push_back(std::move(curve));
    }
  }
  if (curves.empty()) throw DataError("[plot] these runs hold no finite loss.");
  if (!options.output.empty()) {
    write_picture(options.output, train::svg_chart(curves, options.log_x), "plot");
    fmt::print("wrote {}\n", options.output);
    return;
  }
  const train::ProgressStyle style = train::ProgressStyle::of(stdout);
  fmt::print("{}", train::braille_chart(
                       curves,
                       {.columns = style.columns, .colour = style.colour, .log_x = options.log_x}));
}

void run_memory_plot(const PlotOptions& options) {
  constexpr size_t kGroups = 14;
  if (options.runs.size() != 1) {
    throw ConfigError("[plot] --memory draws one run: expected one, got several.");
  }
  const train::MemoryTimeline timeline = train::read_memory_timeline(
      options.runs[0], train::parse_memory_grouping(options.by), kGroups);
  fmt::print("{}", train::peak_table(timeline));
  if (options.output.empty()) return;
  write_picture(options.output, train::memory_chart(timeline), "plot");
  fmt::print("wrote {}\n", options.output);
}

}  // namespace

void add_plot(const Verb& app) {
  auto options = std::make_shared<PlotOptions>();
  const Verb verb = app.verb(
      "plot", "Draw the loss curves of runs, or a run's memory, in the terminal or as a picture");
  verb.option("run", options->runs, "Run directories, or metrics.jsonl files").required();
  verb.option("-o,--output", options->output, "Write a picture to FILE.svg, .png or .pdf instead");
  verb.flag("--log-x", options->log_x, "Logarithmic step axis");
  const Option memory = verb.flag(
      "--memory", options->memory,
      "What held memory in the step that the run recorded (memory.snapshot_step); RUN may be the "
      "run's memory.json");
  verb.option("--by", options->by, "Tell memory apart by this (default operator)")
      .one_of({"operator", "module", "phase"})
      .needs(memory);
  verb.runs([options] {
    if (!options->output.empty()) check_picture(options->output, "plot");
    options->memory ? run_memory_plot(*options) : run_plot(*options);
  });
}

}  // namespace lockstep::launcher
