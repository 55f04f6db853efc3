#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <optional>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/json_line.h"
#include "core/base/parallel.h"
#include "core/device/exact_rows.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/load_option.h"
#include "launcher/verbs.h"
#include "train/build.h"
#include "train/compiled_blocks.h"
#include "train/precision.h"
#include "train/report/run_directory.h"
#include "train/run/final_model.h"
#include "train/weights.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

struct EvalOptions {
  std::string run;
  std::string weights;
  std::vector<std::string> overrides;
  std::vector<std::string> plugins;
  int64_t max_batches = 0;
  bool json = false;
};

void print_json(const train::Evaluation& evaluation, const fs::path& weights) {
  JsonLine line;
  line.add("weights", weights.string())
      .add("targets", evaluation.targets)
      .add("loss", evaluation.loss)
      .add("perplexity", std::exp(evaluation.loss));
  if (evaluation.bytes_per_target > 0) line.add("bits_per_byte", evaluation.bits_per_byte());
  if (!std::isnan(evaluation.accuracy)) line.add("accuracy", evaluation.accuracy);
  fmt::print("{}\n", line.text());
}

void print_text(const train::Evaluation& evaluation, const fs::path& weights) {
  fmt::print("weights        {}\n", weights.string());
  fmt::print("targets        {}\n", evaluation.targets);
  fmt::print("loss           {:.6f}\n", evaluation.loss);
  if (!std::isnan(evaluation.accuracy)) {
    fmt::print("accuracy       {:.2f} %\n", 100 * evaluation.accuracy);
    return;
  }
  fmt::print("perplexity     {:.4f}\n", std::exp(evaluation.loss));
  if (evaluation.bytes_per_target > 0) {
    fmt::print("bits per byte  {:.4f}\n", evaluation.bits_per_byte());
  }
}

void run_eval(const EvalOptions& options) {
  const std::vector<Plugin> plugins = load_plugins(options.plugins);
  const train::RunDirectory run = train::RunDirectory::open(options.run);
  const fs::path weights =
      options.weights.empty() ? train::model_folder(run) : fs::path(options.weights);
  // The run's weights are loaded later, so the config's initial weights need not be read.
  std::vector<std::string> overrides = options.overrides;
  overrides.push_back("model.weights=");
  const std::vector<std::string> files = {run.config().string()};
  const config::RunConfig config = load_config(files, overrides);
  if (config.threads() > 0) set_num_threads(config.threads());
  const std::unique_ptr<train::Task> task = train::build_task(config);
  LS_CHECK(
      task->holds_out(), DataError,
      "[eval] the run holds no data out. Name some with --set, as data.text.held_out_bytes=1000.");
  train::load_weights(task->model(), weights);
  std::optional<ExactRows> exact_rows;
  if (config.reproducibility() == config::BITWISE) exact_rows.emplace();
  const AutocastGuard region =
      train::autocast_region(train::precision_of(config), parse_device(config.device()).type);
  const auto compiled = train::compile_blocks(config, task->model());
  const train::Evaluation evaluation = *task->evaluate({.max_batches = options.max_batches});
  if (options.json) {
    print_json(evaluation, weights);
  } else {
    print_text(evaluation, weights);
  }
  for (const std::string& reason : compiled ? compiled->reasons() : std::vector<std::string>()) {
    fmt::print(stderr, "note: compile: {}\n", reason);
  }
}

}  // namespace

void add_eval(const Verb& app) {
  auto options = std::make_shared<EvalOptions>();
  const Verb verb = app.verb("eval", "How well a run's model predicts held-out data");
  verb.option("run", options->run, "Run directory, finished or not").required();
  verb.option("--weights", options->weights,
              "Safetensors file or folder (default: the run's, else its newest checkpoint's)");
  verb.option("--set", options->overrides,
              "Override one field of the run's config: data.text.path=other.txt")
      .one_value_each();
  add_load_option(verb, options->plugins);
  verb.option("--max-batches", options->max_batches,
              "Micro-batches, spread evenly over the data (default: all of it)")
      .positive();
  verb.flag("--json", options->json, "One JSON object instead of lines of text");
  verb.runs([options] { run_eval(*options); });
}

}  // namespace lockstep::launcher
