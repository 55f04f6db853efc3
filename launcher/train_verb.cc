#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "configs/annotated_text.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "configs/variables.h"
#include "core/parallel.h"
#include "launcher/verbs.h"
#include "train/atomic_file.h"
#include "train/compression.h"
#include "train/environment.h"
#include "train/generate.h"
#include "train/progress.h"
#include "train/text_data.h"
#include "train/tokenizer.h"
#include "train/training_run.h"

namespace lockstep::launcher {

namespace {

struct TrainOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  int64_t steps = 0;
  std::string run_directory;
  std::string log_format = "text";
  std::vector<std::string> command_line;
};

/// Digits in groups of three.
std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

void print_banner(train::Trainer& trainer, const config::RunConfig& config,
                  const train::RunDirectory& directory) {
  const auto& train = config.train();
  fmt::print(stderr, "{}: {} parameters, {} steps of {} x {} tokens, {} thread{}, writing to {}\n",
             config.name(), grouped(trainer.model().parameter_count()), grouped(train.steps()),
             train.batch_size(), trainer.model().context_length(), num_threads(),
             num_threads() == 1 ? "" : "s", directory.path().string());
}

void print_summary(const train::RunSummary& summary, const train::RunDirectory& directory) {
  const auto percentile = [&](double percent) { return summary.step_times.percentile(percent); };
  fmt::print("\nrun        {}\n", directory.path().string());
  fmt::print("trained    {} steps, {} tokens in {}, {} tokens/s, final loss {:.4f}{}\n",
             grouped(summary.steps), grouped(summary.tokens),
             train::format_duration(summary.seconds),
             grouped(static_cast<int64_t>(static_cast<double>(summary.tokens) / summary.seconds)),
             summary.final_loss, summary.stopped_by_time ? " (stopped by the time limit)" : "");
  fmt::print("step time  p50 {:.1f} ms, p90 {:.1f} ms, p99 {:.1f} ms\n", percentile(50),
             percentile(90), percentile(99));
}

/// How well the held-out text is predicted, and for plain bytes what compressors make of the same.
void print_held_out(const train::RunSummary& summary, const train::TokenSource& source) {
  const train::Evaluation& held_out = summary.held_out;
  if (held_out.targets == 0) return;
  fmt::print("held out   {} tokens: loss {:.4f}, {:.3f} bits per byte\n", grouped(held_out.targets),
             held_out.loss, held_out.bits_per_byte());
  const auto* text = dynamic_cast<const train::ByteText*>(&source);
  if (text == nullptr) return;
  const std::span<const std::byte> bytes = text->held_out();
  const auto bits = [&](size_t size) {
    return 8.0 * static_cast<double>(size) / static_cast<double>(bytes.size());
  };
  fmt::print("           the same {} bytes by gzip -9 {:.3f}, xz -9 {:.3f}, bzip2 -9 {:.3f}\n",
             grouped(std::ssize(bytes)), bits(train::gzip_size(bytes)), bits(train::xz_size(bytes)),
             bits(train::bzip2_size(bytes)));
}

/// About `bytes` of text after a line end.
void print_sample(train::Trainer& trainer, int64_t bytes, uint64_t seed) {
  const train::Tokenizer* tokenizer = trainer.source().tokenizer();
  if (bytes == 0 || tokenizer == nullptr) return;
  const std::vector<uint32_t> ids = train::encode(*tokenizer, "\n");
  const double size = std::max(1.0, trainer.source().held_out_bytes_per_token());
  const auto tokens = static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / size));
  fmt::print("sample\n");
  const auto print = [&](int64_t token) {
    std::string piece;
    tokenizer->decode(static_cast<uint32_t>(token), piece);
    std::fwrite(piece.data(), 1, piece.size(), stdout);
  };
  train::generate(trainer.model(), {ids.begin(), ids.end()},
                  {.max_new_tokens = tokens, .temperature = 0.8, .top_k = 0, .seed = seed}, print);
  fmt::print("\n\n");
}

void run_train(const TrainOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (options.steps != 0) overrides.push_back(fmt::format("train.steps={}", options.steps));
  config::Origins origins;
  const config::RunConfig config =
      config::load(options.files, overrides, &origins, config::process_variables());
  if (config.threads() > 0) set_num_threads(config.threads());
  const train::RunDirectory directory = options.run_directory.empty()
                                            ? train::RunDirectory::create_new(config.name())
                                            : train::RunDirectory::create_at(options.run_directory);
  const std::string environment = train::environment_json({.command_line = options.command_line,
                                                           .version = LOCKSTEP_VERSION,
                                                           .threads = num_threads(),
                                                           .libraries = {}});
  train::TrainingRun run(config, directory, environment);
  print_banner(run.trainer(), config, directory);
  train::write_text(directory.path() / "config_origins.txtpb",
                    config::annotated_text(config, origins));
  const train::LogFormat format = train::parse_log_format(options.log_format);
  // Other formats are for programs, which read them from standard output and nothing else there.
  const bool is_text = format == train::LogFormat::kText;
  const train::RunSummary summary = run.run(is_text ? stderr : stdout, format);
  if (!is_text) return;
  print_summary(summary, directory);
  print_held_out(summary, run.trainer().source());
  print_sample(run.trainer(), config.train().sample_bytes(), config.seed());
  fmt::print("look at    {}/metrics.jsonl; more text: lockstep sample {}\n",
             directory.path().string(), directory.path().string());
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "Train the model that a config describes");
  verb->add_option("config", options->files, "Config files (.txtpb); later ones win field by field")
      ->required();
  verb->add_option("--set", options->overrides, "Override one field: optimizer.learning_rate=3e-4")
      ->allow_extra_args(false);
  verb->add_option("--steps", options->steps, "Train this many steps (train.steps)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--log-format", options->log_format,
                   "How steps are shown (default text); other formats go to standard output")
      ->check(CLI::IsMember({"text", "json", "nanogpt", "llmc"}));
  verb->add_option("--run-dir", options->run_directory,
                   "Folder for everything the run writes (default: runs/NAME-DATE-TIME)");
  verb->callback([&app, options] {
    options->command_line = {app.get_name(), "train"};
    for (const std::string& file : options->files) options->command_line.push_back(file);
    for (const std::string& value : options->overrides) {
      options->command_line.insert(options->command_line.end(), {"--set", value});
    }
    if (options->steps != 0) {
      options->command_line.insert(options->command_line.end(),
                                   {"--steps", std::to_string(options->steps)});
    }
    run_train(*options);
  });
}

}  // namespace lockstep::launcher
