#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "configs/architectures.h"
#include "configs/origins.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/exit_code.h"
#include "launcher/picture.h"
#include "launcher/verbs.h"
#include "train/coordinate_check.h"
#include "train/report/coordinate_chart.h"

namespace lockstep::launcher {

namespace {

struct CheckOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::vector<std::string> widths = {"64", "128", "256", "512"};
  bool more_heads = false;
  bool json = false;
  std::string output;
  train::CoordinateOptions check;
};

/// "": `text` is a width; otherwise what is wrong with it.
std::string problem_of_width(const std::string& text) {
  const bool is_number = !text.empty() && text.size() <= 7 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  return is_number && std::stoll(text) > 0
             ? ""
             : fmt::format("expected widths above 0, as 64,128,256, got \"{}\"", text);
}

std::vector<int64_t> parse_widths(const std::vector<std::string>& texts) {
  std::vector<int64_t> widths;
  for (const std::string& text : texts) widths.push_back(std::stoll(text));
  std::ranges::sort(widths);
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  LS_CHECK(widths.size() >= 2, ConfigError,
           "[coordinate-check] --widths {}: expected at least two different widths to compare, as "
           "64,128,256.",
           fmt::join(texts, ","));
  return widths;
}

/// A size of the config's model, times width / its width.
int64_t scaled(const char* what, int64_t size, int64_t width, int64_t of_width) {
  LS_CHECK(
      size * width % of_width == 0, ConfigError,
      "[coordinate-check] a model of width {} would have {:.4g} {}, as one of width {} has {}: "
      "expected a whole number. Choose other --widths.",
      width, static_cast<double>(size * width) / static_cast<double>(of_width), what, of_width,
      size);
  return size * width / of_width;
}

/// The assignments that give the model of `files` another width, and let it learn from the first
/// step on.
class WidthOverrides {
 public:
  explicit WidthOverrides(const CheckOptions& options)
      : options_(options), base_(load_config(options.files, options.overrides, &origins_)) {
    const config::Architecture& architecture = config::architecture_of(base_.model());
    LS_CHECK(architecture.width != nullptr, ConfigError,
             "[coordinate-check] {} is no transformer: expected a config with model.gpt2 or "
             "model.llama, whose width can be set.",
             architecture.path());
    LS_CHECK(!options.more_heads || !base_.model().has_mup() || is_set("model.mup.base_heads"),
             ConfigError,
             "[coordinate-check] --more-heads with model.mup: expected model.mup.base_heads, as "
             "its default are the heads of each model. Set it to the heads of the base model.");
  }

  config::RunConfig at(int64_t width, int64_t seed) const {
    const config::Architecture& architecture = config::architecture_of(base_.model());
    const int64_t base_width = architecture.width(base_.model());
    int64_t heads = architecture.heads(base_.model());
    std::vector<std::string> overrides = options_.overrides;
    const auto set = [&](const std::string& path, auto value) {
      overrides.push_back(fmt::format("{}={}", path, value));
    };
    const std::string model = architecture.path();
    set(model + ".width", width);
    if (options_.more_heads) {
      heads = scaled("heads", heads, width, base_width);
      set(model + ".heads", heads);
      if (is_set(model + ".kv_heads")) {
        set(model + ".kv_heads",
            scaled("key and value heads", base_.model().llama().kv_heads(), width, base_width));
      }
    }
    if (is_set(model + ".hidden_width")) {
      set(model + ".hidden_width",
          scaled("inner elements", base_.model().llama().hidden_width(), width, base_width));
    }
    LS_CHECK(width % heads == 0, ConfigError,
             "[coordinate-check] {} heads do not divide the width {}: expected multiples of {}. "
             "Choose other --widths, or --more-heads.",
             heads, width, heads);
    set("model.weights", "");
    set("seed", base_.seed() + static_cast<uint64_t>(seed));
    set("schedule.kind", "CONSTANT");
    set("schedule.warmup_steps", 0);
    return load_config(options_.files, overrides);
  }

 private:
  bool is_set(const std::string& path) const {
    const auto found = origins_.find(path);
    return found != origins_.end() && config::is_written(found->second);
  }

  const CheckOptions& options_;
  config::Origins origins_;
  config::RunConfig base_;
};

void run_check(CheckOptions& options) {
  if (!options.output.empty()) check_picture(options.output, "coordinate-check");
  options.check.widths = parse_widths(options.widths);
  const WidthOverrides configs(options);
  // All of them are checked before the first is trained.
  for (const int64_t width : options.check.widths) (void)configs.at(width, 0);
  const train::CoordinateCheck check = train::check_coordinates(
      options.check, [&](int64_t width, int64_t seed) { return configs.at(width, seed); });
  fmt::print("{}", options.json ? train::coordinates_json(check) : train::coordinates_text(check));
  if (!options.output.empty()) {
    write_picture(options.output, train::coordinate_chart(check), "coordinate-check");
    if (!options.json) fmt::print("wrote {}\n", options.output);
  }
  if (!check.passed()) throw ExitStatus(kFailure);
}

}  // namespace

void add_coordinate_check(const Verb& app) {
  auto options = std::make_shared<CheckOptions>();
  const Verb verb = app.verb(
      "coordinate-check",
      "Do activations keep their sizes as the model becomes wider? Trains each width for a few "
      "steps (docs/mup.md). Exit status 0: they do, 1: they do not");
  add_config_options(verb, options->files, options->overrides, "model.mup.base_width=64");
  verb.option("--widths", options->widths, "Widths to compare (default 64,128,256,512)")
      .separated_by(',')
      .one_value_each()
      .check(problem_of_width);
  verb.flag("--more-heads", options->more_heads,
            "Wider models have more heads, of the elements that the config's have; by default as "
            "many, of more elements");
  verb.option("--steps", options->check.steps, "Steps of each model").positive().shows_default();
  verb.option("--seeds", options->check.seeds, "Models of each width, whose numbers are averaged")
      .positive()
      .shows_default();
  verb.option("--threshold", options->check.threshold,
              "An exponent of the width further from 0 than this is growth, or shrinking")
      .positive()
      .shows_default();
  verb.flag("--json", options->json, "One JSON object instead of tables");
  verb.option("-o,--output", options->output, "Draw the sizes as FILE.svg, .png or .pdf too");
  verb.runs([options] { run_check(*options); });
}

}  // namespace lockstep::launcher
