// How fast batches come from each kind of data, beside how fast two cores train on them: tokens a
// second of the start of a run, which reads and tokenizes text, with and without its cache, and of
// the sequences that steps draw from then on.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchmarks/figures.h"
#include "benchmarks/scratch_folder.h"
#include "configs/data.pb.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/mapped_file.h"
#include "data/token_shards.h"
#include "data/tokenized_text.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/bpe_training.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "train/build_data.h"
#include "train/trainer.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string text = "build/data/kjv.txt";
  std::string config = "configs/examples/bench_baby.txtpb";
  int copies = 4;
  int64_t vocabulary = 8000;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One text in all forms that runs read, with the tokenizer that is used for each.
class Corpus {
 public:
  Corpus(const Options& options, const fs::path& folder) : folder_(folder) {
    const MappedFile file(options.text);
    const std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    const train::TrainedBpe trained = train::train_bpe(text, options.vocabulary);
    write_text(folder / "vocab.json", trained.vocabulary);
    write_text(folder / "merges.txt", trained.merges);
    for (int copy = 0; copy < options.copies; ++copy) {
      const std::string number = fmt::format("{:03}", copy);
      // Each copy has words of its own, so that none is found in a cache of the one before.
      write_text(folder / ("text" + number + ".txt"), fmt::format("copy {}\n{}", copy, text));
      write_text(folder / ("text" + number + ".jsonl"), json_lines(text, copy, "text"));
      write_text(folder / ("examples" + number + ".jsonl"), json_lines(text, copy, "completion"));
    }
    const train::Documents documents((folder / "text*.txt").string());
    const train::BpeTokenizer tokenizer((folder / "vocab.json").string(),
                                        (folder / "merges.txt").string());
    const train::TokenizedText tokens =
        train::tokenize(documents, 0, tokenizer, train::TokenCache({}));
    train::write_shard(folder / "shard.bin", train::ShardFormat::kLlmc, tokens.tokens);
    tokens_ = tokens.tokens.size();
  }

  /// Tokens of all copies of the text.
  int64_t tokens() const { return tokens_; }
  /// The `data` message of a kind of data, in the words of a config.
  std::string data(const std::string& kind) const {
    const std::string bpe = fmt::format(
        "bpe {{ vocab: \"{0}/vocab.json\" merges: \"{0}/merges.txt\" }}", folder_.string());
    const auto text = [&](const char* pattern) {
      return fmt::format("path: \"{}/{}\"", folder_.string(), pattern);
    };
    const std::string cache = fmt::format("cache_dir: \"{}/cache\"", folder_.string());
    const std::string shards =
        fmt::format("shards {{ train: \"{}/shard.bin\" }}", folder_.string());
    if (kind == "text")
      return fmt::format("text {{ {} tokenizer {{ {} }} {} }}", text("text*.txt"), bpe, cache);
    if (kind == "jsonl")
      return fmt::format("text {{ {} tokenizer {{ {} }} {} }}", text("text*.jsonl"), bpe, cache);
    if (kind == "shards") return shards;
    if (kind == "mixture") {
      return fmt::format("mixture {{ source {{ text {{ {} }} weight: 2 }} source {{ {} }} {} {} }}",
                         text("text*.jsonl"), shards, bpe, cache);
    }
    return fmt::format("examples {{ {} tokenizer {{ {} }} }}", text("examples*.jsonl"), bpe);
  }

 private:
  /// Each line of the text as a document, or an example with the line before as its prompt.
  static std::string json_lines(const std::string& text, int copy, const char* member) {
    std::string lines, before = fmt::format("copy {}", copy);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      begin = end + 1;
      if (line.empty()) continue;
      lines += nlohmann::json({{"prompt", before}, {member, line}}).dump() + "\n";
      before = line;
    }
    return lines;
  }

  fs::path folder_;
  int64_t tokens_ = 0;
};

/// What two cores train: tokens a second, and tokens of a sequence.
struct Training {
  double rate = 0;
  int64_t length = 0;
};

Training train_for_a_while(const config::RunConfig& config) {
  train::Trainer trainer = train::Trainer::create(config);
  constexpr int kWarmUp = 5, kSteps = 25;
  Training training;
  std::vector<double> rates;
  for (int i = 0; i < kWarmUp + kSteps; ++i) {
    const train::StepResult step = trainer.step();
    if (i >= kWarmUp) rates.push_back(static_cast<double>(step.tokens) / step.seconds);
    training.length = step.tokens / config.train().batch_size();
  }
  std::ranges::nth_element(rates, rates.begin() + kSteps / 2);
  training.rate = rates[kSteps / 2];
  return training;
}

/// Tokens a second that one thread draws for steps of `request`.
double draw_rate(const train::TokenSource& source, const train::DataRequest& request) {
  std::vector<int64_t> inputs(static_cast<size_t>(request.length)), targets(inputs.size());
  const auto start = Clock::now();
  int64_t step = 0;
  for (; seconds_since(start) < 1; ++step) {
    for (int64_t i = 0; i < request.sequences_per_step; ++i) {
      source.sequence(step, i, inputs, targets);
    }
  }
  return static_cast<double>(step * request.sequences_per_step * request.length) /
         seconds_since(start);
}

nlohmann::ordered_json measure(const Options& options) {
  const Training training = train_for_a_while(launcher::load_config({options.config}));
  nlohmann::ordered_json figures = {{"training_tokens_per_s", training.rate}};
  const ScratchFolder folder;
  const Corpus corpus(options, folder.path());
  const auto add = [&](const std::string& what, double rate) {
    figures[what + "_tokens_per_s"] = rate;
    figures[what + "_ratio"] = rate / training.rate;
  };
  for (const std::string kind : {"text", "jsonl", "shards", "mixture", "examples"}) {
    config::RunConfig config;
    config::Origins origins;
    config::merge_file(config, origins, options.config);
    config::merge_text(config, origins, fmt::format("data {{ {} }}", corpus.data(kind)), kind);
    config::resolve(config, origins);
    const train::DataRequest request = {.vocabulary = options.vocabulary,
                                        .seed = config.seed(),
                                        .sequences_per_step = config.train().batch_size(),
                                        .length = training.length};
    fs::remove_all(folder.path() / "cache");
    std::unique_ptr<train::TokenSource> source;
    for (const std::string start : {"first", "next"}) {
      const auto begin = Clock::now();
      source = train::build_data(config.data(), request);
      const double seconds = seconds_since(begin);
      if (kind == "shards") continue;  // they are mapped, and not read, when a run starts
      add(kind + "_" + start + "_start", static_cast<double>(corpus.tokens()) / seconds);
    }
    add(kind + "_drawn", draw_rate(*source, request));
  }
  return figures;
}

}  // namespace

int run(int argc, char** argv) {
  Options options;
  bool json = false;
  launcher::CommandLine line("Batches from each kind of data, beside training");
  line.option("text", options.text, "Text file (default: that of ./dev train)");
  line.option("--config", options.config, "Config whose step is timed (default: bench_baby)");
  line.option("--copies", options.copies, "How often the text is repeated (default 4)").positive();
  line.flag("--json", json, "Print an object instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  print_figures(measure(options), json);
  return 0;
}

}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
