#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "core/error.h"
#include "launcher/verbs.h"
#include "train/generate.h"
#include "train/tokenizer.h"
#include "train/weights.h"

namespace lockstep::launcher {

namespace {

struct SampleOptions {
  std::string run_directory;
  std::string start = "\n";
  int64_t samples = 10;
  train::GenerateOptions generate;
};

/// "FILE:path" reads the prompt from a file.
std::string prompt_text(const std::string& start) {
  constexpr std::string_view kFile = "FILE:";
  if (!start.starts_with(kFile)) return start;
  const std::string path = start.substr(kFile.size());
  std::ifstream in(path, std::ios::binary);
  if (!in) throw DataError(fmt::format("[sample] cannot read the prompt file {}.", path));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void run_sample(const SampleOptions& options) {
  const std::filesystem::path folder =
      train::model_folder(train::RunDirectory::open(options.run_directory));
  const std::unique_ptr<nn::LanguageModel> model = train::load_model(folder);
  const auto tokenizer = train::load_tokenizer(folder);
  const std::string text = prompt_text(options.start);
  const std::vector<uint32_t> ids = train::encode_special(*tokenizer, text);
  const std::vector<int64_t> prompt(ids.begin(), ids.end());
  for (int64_t i = 0; i < options.samples; ++i) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    train::GenerateOptions generate = options.generate;
    generate.seed += static_cast<uint64_t>(i);
    train::generate(*model, prompt, generate, [&](int64_t token) {
      std::string piece;
      tokenizer->decode(static_cast<uint32_t>(token), piece);
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    });
    std::fputs("\n---------------\n", stdout);
  }
}

}  // namespace

void add_sample(CLI::App& app) {
  auto options = std::make_shared<SampleOptions>();
  CLI::App* verb = app.add_subcommand(
      "sample",
      "Generate text with the model of a run, finished or not, or of a Hugging Face folder");
  verb->add_option("run", options->run_directory, "Run directory or model folder")->required();
  verb->add_option("--start", options->start, "Prompt, or FILE:path (default: a line end)");
  verb->add_option("--num_samples", options->samples, "How many texts (default 10)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--max_new_tokens", options->generate.max_new_tokens,
                   "Tokens in each (default 500)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--temperature", options->generate.temperature,
                   "Below 1 is more certain; 0 always takes the likeliest (default 0.8)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--top_k", options->generate.top_k,
                   "Draw from the k likeliest only; 0 is all (default 200)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--seed", options->generate.seed,
                   "The same seed gives the same text (default 1337)");
  verb->callback([options] { run_sample(*options); });
}

}  // namespace lockstep::launcher
