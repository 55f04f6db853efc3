#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/json_line.h"
#include "core/base/terminal_text.h"
#include "core/device/exact_rows.h"
#include "data/tokenizers/tokenizer.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/standard_streams.h"
#include "launcher/verbs.h"
#include "train/generate.h"
#include "train/precision.h"
#include "train/report/run_directory.h"
#include "train/run/final_model.h"
#include "train/weights.h"
#include "train/weights/file_digests.h"

namespace lockstep::launcher {

namespace {

struct SampleOptions {
  std::string run_directory;
  std::string start = "\n";
  int64_t samples = 10;
  bool json = false;
  bool in_run_precision = false;
  bool ignore_eos = false;
  train::GenerateOptions generate;
};

constexpr uint64_t kMostPromptBytes = uint64_t{1} << 30;

/// Returns the prompt; "FILE:path" reads it from a file.
std::string prompt_text(const std::string& start) {
  constexpr std::string_view kFile = "FILE:";
  if (!start.starts_with(kFile)) return start;
  const std::string path = start.substr(kFile.size());
  try {
    return read_whole_file(path, kMostPromptBytes);
  } catch (const FileError& error) {
    throw DataError(
        fmt::format("[sample] cannot read the prompt file {}: {}.", path, error.reason()));
  }
}

/// What samples are computed with.
struct Arithmetic {
  train::Precision precision = train::Precision::kF32;
  DeviceType device = DeviceType::kCPU;
  std::optional<ExactRows> exact_rows;
};

/// Where the folder has the config of a run, as the run trained, but in float32 if nothing else is
/// asked for.
Arithmetic arithmetic_of(const train::RunDirectory& run, const SampleOptions& options) {
  Arithmetic arithmetic;
  const bool has_config = std::filesystem::exists(run.config());
  LS_CHECK(has_config || !options.in_run_precision, DataError,
           "[sample] --in-run-precision takes the precision of a run: expected a run directory, "
           "got {}, which has no config. Leave the option out.",
           options.run_directory);
  if (!has_config) return arithmetic;
  const std::vector<std::string> files = {run.config().string()};
  const config::RunConfig config = load_config(files, {"model.weights="});
  if (config.reproducibility() == config::BITWISE) arithmetic.exact_rows.emplace();
  if (!options.in_run_precision) return arithmetic;
  arithmetic.precision = train::precision_of(config);
  arithmetic.device = parse_device(config.device()).type;
  return arithmetic;
}

/// One JSON object: the tokens of a text, and the log-probabilities of those that were drawn.
void print_json(const std::vector<int64_t>& prompt, const std::vector<int64_t>& drawn,
                const std::vector<float>& log_probabilities, const std::string& text) {
  const auto doubles = [](const auto& numbers) {
    return std::vector<double>(numbers.begin(), numbers.end());
  };
  JsonLine line;
  line.add("prompt_tokens", doubles(prompt))
      .add("tokens", doubles(drawn))
      .add("log_probabilities", doubles(log_probabilities))
      .add("text", text);
  write_output(line.text() + "\n");
}

void run_sample(const SampleOptions& options) {
  const train::RunDirectory run = train::RunDirectory::open(options.run_directory);
  const std::filesystem::path folder = train::model_folder(run);
  const std::unique_ptr<nn::LanguageModel> model = train::load_model(folder);
  train::check_files_beside_weights(folder);
  const auto tokenizer = train::load_tokenizer(folder);
  const std::string text = prompt_text(options.start);
  const std::vector<uint32_t> ids = train::encode_special(*tokenizer, text);
  const std::vector<int64_t> prompt(ids.begin(), ids.end());
  // A file gets the bytes as they are; a terminal must not obey them.
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  const auto show = [&](TerminalText& filter, std::string_view piece) {
    write_output(is_terminal ? filter.add(piece) : std::string(piece));
  };
  const Arithmetic arithmetic = arithmetic_of(run, options);
  const AutocastGuard region = train::autocast_region(arithmetic.precision, arithmetic.device);
  for (int64_t i = 0; i < options.samples; ++i) {
    TerminalText filter;
    if (!options.json) show(filter, text);
    std::string whole;
    std::vector<float> log_probabilities;
    train::GenerateOptions generate = options.generate;
    generate.seed += static_cast<uint64_t>(i);
    generate.vocabulary = tokenizer->vocabulary();
    if (!options.ignore_eos) generate.end = tokenizer->end_of_text();
    if (options.json) generate.log_probabilities = &log_probabilities;
    const std::vector<int64_t> drawn =
        train::generate(*model, prompt, generate, [&](int64_t token) {
          std::string piece;
          tokenizer->decode(static_cast<uint32_t>(token), piece);
          if (options.json) {
            whole += piece;
          } else {
            show(filter, piece);
          }
        });
    if (options.json) {
      print_json(prompt, drawn, log_probabilities, whole);
      continue;
    }
    write_output(filter.finish() + "\n---------------\n");
  }
}

}  // namespace

void add_sample(const Verb& app) {
  auto options = std::make_shared<SampleOptions>();
  const Verb verb = app.verb(
      "sample",
      "Generate text with the model of a run, finished or not, or of a Hugging Face folder");
  verb.option("run", options->run_directory, "Run directory or model folder").required();
  verb.option("--start", options->start, "Prompt, or FILE:path (default: a line end)");
  verb.option("--num-samples", options->samples, "How many texts (default 10)").positive();
  verb.option("--max-new-tokens", options->generate.max_new_tokens,
              "Tokens in each, at most (default 500)")
      .positive();
  verb.option("--temperature", options->generate.temperature,
              "Below 1 is more certain; 0 always takes the likeliest (default 0.8)")
      .not_negative();
  verb.option("--top-k", options->generate.top_k,
              "Draw from the k likeliest only; 0 is all (default 200)")
      .not_negative();
  verb.option("--seed", options->generate.seed, "The same seed gives the same text (default 1337)");
  verb.flag("--ignore-eos", options->ignore_eos,
            "Go on behind the token that ends a document, at which a text ends otherwise");
  verb.flag("--json", options->json,
            "One JSON object for each text: its tokens, and the log-probability of each new one");
  verb.flag("--in-run-precision", options->in_run_precision,
            "Compute in the precision that the run trains in, not in float32");
  verb.runs([options] { run_sample(*options); });
}

}  // namespace lockstep::launcher
