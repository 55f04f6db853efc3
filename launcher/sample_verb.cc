#include <fmt/core.h>
#include <unistd.h>

#include <memory>

#include "core/base/files/regular_file.h"
#include "core/base/terminal_text.h"
#include "data/tokenizers/tokenizer.h"
#include "launcher/command_line.h"
#include "launcher/standard_streams.h"
#include "launcher/verbs.h"
#include "train/generate.h"
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

void run_sample(const SampleOptions& options) {
  const std::filesystem::path folder =
      train::model_folder(train::RunDirectory::open(options.run_directory));
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
  for (int64_t i = 0; i < options.samples; ++i) {
    TerminalText filter;
    show(filter, text);
    train::GenerateOptions generate = options.generate;
    generate.seed += static_cast<uint64_t>(i);
    generate.vocabulary = tokenizer->vocabulary();
    train::generate(*model, prompt, generate, [&](int64_t token) {
      std::string piece;
      tokenizer->decode(static_cast<uint32_t>(token), piece);
      show(filter, piece);
    });
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
  verb.option("--max-new-tokens", options->generate.max_new_tokens, "Tokens in each (default 500)")
      .positive();
  verb.option("--temperature", options->generate.temperature,
              "Below 1 is more certain; 0 always takes the likeliest (default 0.8)")
      .not_negative();
  verb.option("--top-k", options->generate.top_k,
              "Draw from the k likeliest only; 0 is all (default 200)")
      .not_negative();
  verb.option("--seed", options->generate.seed, "The same seed gives the same text (default 1337)");
  verb.runs([options] { run_sample(*options); });
}

}  // namespace lockstep::launcher
