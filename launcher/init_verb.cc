#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/digits.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "data/tokenized_text.h"
#include "launcher/command_line.h"
#include "launcher/init_text.h"
#include "launcher/shell_command.h"
#include "launcher/standard_streams.h"
#include "launcher/verbs.h"
#include "train/build_data.h"
#include "train/run/plan.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

/// Default of data.text.cache_dir.
constexpr const char* kCacheFolder = ".cache/lockstep";

struct InitOptions {
  std::string file;
  std::string size = "small";
  std::string output;
  bool train = false;
};

/// Trains the tokenizer that suits the text, and measures it. Training finds it in the cache.
void choose_tokenizer(const train::Documents& documents, InitText& text) {
  text.vocabulary = vocabulary_for(text.bytes);
  if (text.vocabulary == 0) return;
  config::TokenizerConfig wanted;
  wanted.mutable_bpe()->set_vocab_size(text.vocabulary);
  const auto tokenizer = train::build_tokenizer(wanted, documents, kCacheFolder);
  text.tokens = tokenizer->vocabulary();
  constexpr size_t kMeasured = 1 << 20;  // bytes: enough for two digits
  const std::string_view sample = std::string_view(*documents.whole()).substr(0, kMeasured);
  text.bytes_per_token = static_cast<double>(sample.size()) /
                         static_cast<double>(train::encode(*tokenizer, sample).size());
}

/// Becomes `lockstep train FILE`.
[[noreturn]] void train_on(const std::string& file) {
  require_output_written();
  restore_write_signals();
  const char* const arguments[] = {"lockstep", "train", file.c_str(), nullptr};
  ::execv("/proc/self/exe", const_cast<char* const*>(arguments));
  throw Error(fmt::format("[init] cannot start training: {}. Start `lockstep train {}`.",
                          std::generic_category().message(errno), file));
}

void init_text(const InitOptions& options) {
  const std::string output =
      options.output.empty() ? fs::path(options.file).stem().string() + ".txtpb" : options.output;
  LS_CHECK(!name_exists(output), ConfigError,
           "[init] {} exists already. Name another file with -o, or remove this one first.",
           output);
  const train::Documents documents(options.file);
  documents.check_is_text();
  InitText text{
      .path = options.file, .bytes = documents.bytes(), .size = parse_init_size(options.size)};
  choose_tokenizer(documents, text);
  // The held-out tenth has a sequence of its own.
  const auto least = static_cast<int64_t>(10 * static_cast<double>(init_context(text.size) + 2) *
                                          text.bytes_per_token);
  LS_CHECK(text.bytes >= least, DataError,
           "[init] {} is too short: expected at least {} bytes, for sequences of {} tokens in the "
           "tenth that is held out, got {}.",
           options.file, grouped(least), init_context(text.size), grouped(text.bytes));
  write_text(output, init_config(text));
  const std::vector<std::string> files = {output};
  const train::RunPlan plan = train::plan_run(config::load(files));
  fmt::print("wrote {}: {} parameters, {} {}, {} steps of {} tokens\n", output,
             grouped(plan.parameters), grouped(text.tokens),
             text.vocabulary == 0 ? "tokens, the bytes" : "tokens, learnt from the text",
             grouped(plan.steps), grouped(plan.tokens_per_step()));
  if (options.train) train_on(output);
  fmt::print("next: lockstep train {}\n", shell_text({output}));
}

}  // namespace

void add_init(const Verb& app) {
  const Verb init = app.verb("init", "Write a config to start from");
  init.requires_verb();
  auto options = std::make_shared<InitOptions>();
  const Verb text = init.verb(
      "text", "A commented config for a text of your own, with a tokenizer trained on it");
  text.option("file", options->file, "Text file, folder or pattern").required();
  text.option("--size", options->size,
              "Size of the model: small trains in five minutes on a processor, 124m is GPT-2's "
              "smallest (default small)")
      .one_of(init_size_names());
  text.option("-o,--output", options->output,
              "Config to write (default: the name of the text, with .txtpb, in this folder)");
  text.flag("--train", options->train, "Then train on it");
  text.runs([options] { init_text(*options); });
}

}  // namespace lockstep::launcher
