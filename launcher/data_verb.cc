#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/mapped_file.h"
#include "data/token_shards.h"
#include "data/tokenized_text.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/bpe_training.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/json_tokenizer.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"
#include "data/tokenizers/sentencepiece_training.h"
#include "launcher/command_line.h"
#include "launcher/verbs.h"
#include "train/bisect/step_samples.h"

namespace lockstep::launcher {

namespace {

using train::ShardFormat;

struct TokenizerOptions {
  std::string kind;
  std::string vocab;
  std::string merges;
  std::string model;
  int64_t vocab_size = 8000;
  bool has_vocab_size = false;  ///< it was given: BPE files that are missing are to be made
};

struct TokenizeOptions {
  std::vector<std::string> inputs;
  TokenizerOptions tokenizer;
  std::string output;
  std::string format = "llmc";
  int64_t held_out_bytes = 0;
  std::string held_out_output;
  train::JsonLinesOptions json_lines;
};

struct InspectOptions {
  std::string file;
  TokenizerOptions tokenizer;
  std::string format;
  int64_t count = 16;
  int64_t vocabulary = 0;
};

ShardFormat format_named(const std::string& wanted) {
  return wanted == name(ShardFormat::kNanogpt) ? ShardFormat::kNanogpt : ShardFormat::kLlmc;
}

std::vector<std::string> formats() {
  return {name(ShardFormat::kLlmc), name(ShardFormat::kNanogpt)};
}

/// Loads the model file if it exists; otherwise trains a model on the documents and writes it
/// there.
std::unique_ptr<train::Tokenizer> sentencepiece(const TokenizerOptions& options,
                                                const train::Documents* documents) {
  LS_CHECK(!options.model.empty(), ConfigError,
           "[data] --tokenizer sentencepiece needs --model FILE: the model to use, or where to "
           "write the one that is trained.");
  if (documents != nullptr && !std::filesystem::exists(options.model)) {
    documents->check_is_text();
    write_text(options.model, train::train_sentencepiece(documents->joined(), options.vocab_size));
  }
  return std::make_unique<train::SentencePieceTokenizer>(options.model);
}

std::unique_ptr<train::Tokenizer> make_tokenizer(const TokenizerOptions& options,
                                                 const train::Documents* documents) {
  if (options.kind == "byte") return std::make_unique<train::ByteTokenizer>();
  if (options.kind == "sentencepiece") return sentencepiece(options, documents);
  if (options.kind == "hugging_face") {
    LS_CHECK(!options.model.empty(), ConfigError,
             "[data] --tokenizer hugging_face needs --model FILE: a tokenizer.json.");
    return std::make_unique<train::JsonTokenizer>(options.model);
  }
  LS_CHECK(
      !options.vocab.empty() && !options.merges.empty(), ConfigError,
      "[data] --tokenizer bpe needs --vocab (vocab.json or encoder.json) and --merges "
      "(merges.txt or vocab.bpe): the files to use, or with --vocab-size where to write those that "
      "are trained.");
  if (documents != nullptr && options.has_vocab_size && !std::filesystem::exists(options.vocab) &&
      !std::filesystem::exists(options.merges)) {
    documents->check_is_text();
    const train::TrainedBpe trained = train::train_bpe(documents->joined(), options.vocab_size);
    write_text(options.vocab, trained.vocabulary);
    write_text(options.merges, trained.merges);
  }
  return std::make_unique<train::BpeTokenizer>(options.vocab, options.merges);
}

void write_and_report(const std::string& path, ShardFormat format,
                      const train::TokenArray& tokens) {
  train::write_shard(path, format, tokens);
  fmt::print("{}: {} tokens of {} bytes, {} bytes in all\n", path, tokens.size(),
             tokens.stored_width(), std::filesystem::file_size(path));
}

void run_tokenize(const TokenizeOptions& options) {
  const train::Documents documents(options.inputs, options.json_lines);
  for (const std::string& note : documents.notes()) fmt::print(stderr, "note: {}\n", note);
  const auto tokenizer = make_tokenizer(options.tokenizer, &documents);
  LS_CHECK((options.held_out_bytes > 0) == !options.held_out_output.empty(), ConfigError,
           "[data] --held-out-bytes and --held-out-output belong together.");
  const ShardFormat format = format_named(options.format);
  LS_CHECK(format == ShardFormat::kLlmc || tokenizer->vocabulary() <= 65536, ConfigError,
           "[data] nanoGPT's format holds ids below 65536, and the vocabulary has {}. Use --format "
           "llmc.",
           tokenizer->vocabulary());
  const train::TokenizedText text =
      train::tokenize(documents, options.held_out_bytes, *tokenizer, train::TokenCache({}));
  fmt::print("{} bytes in {} file{}{}, {} tokenizer of {} tokens: {:.3f} bytes per token\n",
             documents.bytes(), documents.files(), documents.files() == 1 ? "" : "s",
             documents.count() == documents.files()
                 ? ""
                 : fmt::format(", {} documents", documents.count()),
             tokenizer->name(), tokenizer->vocabulary(),
             static_cast<double>(documents.bytes()) / static_cast<double>(text.tokens.size()));
  write_and_report(options.output, format, text.training());
  if (options.held_out_output.empty()) return;
  const int64_t held_out = text.tokens.size() - text.training_tokens;
  write_and_report(options.held_out_output, format,
                   text.tokens.slice(text.training_tokens, held_out));
}

/// Returns the largest token; throws DataError for the first one outside `vocabulary` (0: no
/// limit).
uint32_t largest_token(const train::TokenArray& tokens, int64_t vocabulary,
                       const std::string& file) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < tokens.size(); ++i) {
    LS_CHECK(vocabulary == 0 || tokens[i] < vocabulary, DataError,
             "[data] {}: token {} is {}: expected ids below {}.", file, i, tokens[i], vocabulary);
    largest = std::max(largest, tokens[i]);
  }
  tokens.check();
  return largest;
}

void run_inspect(const InspectOptions& options) {
  const MappedFile file(options.file);
  const ShardFormat format =
      options.format.empty() ? train::guess_format(file.bytes()) : format_named(options.format);
  const train::TokenShard shard = train::parse_shard(file.bytes(), format, options.file);
  const auto tokenizer =
      options.tokenizer.kind.empty() ? nullptr : make_tokenizer(options.tokenizer, nullptr);
  fmt::print("file       {}, {} bytes\n", options.file, file.bytes().size());
  if (format == ShardFormat::kLlmc) {
    fmt::print("format     llmc, magic {}, version {}\n", shard.magic, shard.version);
  } else {
    fmt::print("format     nanogpt (no header: any even number of bytes reads as tokens)\n");
  }
  fmt::print("tokens     {} of {} bytes\n", shard.tokens.size(), shard.tokens.width());
  const int64_t vocabulary =
      options.vocabulary == 0 && tokenizer ? tokenizer->vocabulary() : options.vocabulary;
  const uint32_t largest = largest_token(shard.tokens, vocabulary, options.file);
  fmt::print("largest    {}{}\n", largest,
             vocabulary > 0 ? fmt::format(", within the vocabulary of {}", vocabulary) : "");
  std::vector<uint32_t> first;
  for (int64_t i = 0; i < std::min(options.count, shard.tokens.size()); ++i) {
    first.push_back(shard.tokens[i]);
  }
  fmt::print("first      {}\n", fmt::join(first, " "));
  if (tokenizer) fmt::print("text       {:?}\n", train::decode(*tokenizer, first));
}

void add_tokenizer_options(const Verb& verb, TokenizerOptions& options) {
  verb.option("--tokenizer", options.kind, "byte, bpe, sentencepiece or hugging_face")
      .one_of({"byte", "bpe", "sentencepiece", "hugging_face"});
  verb.option("--vocab", options.vocab, "bpe: vocab.json or encoder.json");
  verb.option("--merges", options.merges, "bpe: merges.txt or vocab.bpe");
  verb.option("--model", options.model,
              "sentencepiece: tokenizer.model; hugging_face: tokenizer.json");
}

void add_tokenize(const Verb& data) {
  auto options = std::make_shared<TokenizeOptions>();
  options->tokenizer.kind = "byte";
  const Verb verb = data.verb("tokenize", "Turn text into a file of tokens");
  verb.option("input", options->inputs, "Text files, folders or patterns").required();
  add_tokenizer_options(verb, options->tokenizer);
  const Option size = verb.option("--vocab-size", options->tokenizer.vocab_size,
                                  "Train a tokenizer of at most this many tokens and write it to "
                                  "--model, or to --vocab "
                                  "and --merges, unless they are there (default 8000)")
                          .positive();
  verb.option("-o,--output", options->output, "Token file to write").required();
  verb.option("--format", options->format, "llmc or nanogpt (default llmc)").one_of(formats());
  verb.option("--held-out-bytes", options->held_out_bytes,
              "Bytes at the end of the text that go to --held-out-output instead")
      .not_negative();
  verb.option("--held-out-output", options->held_out_output, "Token file for validation");
  verb.option("--json-field", options->json_lines.field,
              ".jsonl, .jsonl.gz, .jsonl.zst, .parquet: member or column with the text (default "
              "text)");
  verb.option("--separator", options->json_lines.separator,
              "JSON lines: text between two documents (default: the end-of-text token, or a line "
              "end)");
  verb.flag("--skip-damaged-lines", options->json_lines.skip_damaged_lines,
            "JSON lines: leave lines out that cannot be read, and count them");
  verb.runs([options, size] {
    options->tokenizer.has_vocab_size = size.given();
    run_tokenize(*options);
  });
}

void add_inspect(const Verb& data) {
  auto options = std::make_shared<InspectOptions>();
  const Verb verb = data.verb("inspect", "Check a file of tokens and show its start");
  verb.option("file", options->file, "Token file").required();
  add_tokenizer_options(verb, options->tokenizer);
  verb.option("--format", options->format, "llmc or nanogpt (default: as the file starts)")
      .one_of(formats());
  verb.option("--vocabulary", options->vocabulary,
              "Refuse ids from here on (default: the tokenizer's vocabulary, if one is given)")
      .positive();
  verb.option("--count", options->count, "How many tokens to show (default 16)").not_negative();
  verb.runs([options] { run_inspect(*options); });
}

void add_of_step(const Verb& data) {
  struct Options {
    std::string run;
    int64_t step = 0;
  };
  auto options = std::make_shared<Options>();
  const Verb verb = data.verb(
      "of-step", "Show which samples a run trained on in a step: file and offset of each");
  verb.option("run", options->run, "Run directory").required();
  verb.option("step", options->step, "Step as in metrics.jsonl, from 1").required().positive();
  verb.runs([options] {
    const train::RunDirectory run = train::RunDirectory::open(options->run);
    fmt::print("{}", train::describe(train::samples_of_step(run, options->step)));
  });
}

}  // namespace

void add_data(const Verb& app) {
  const Verb data = app.verb("data", "Token files: make and check them; samples of a step");
  data.requires_verb();
  add_tokenize(data);
  add_inspect(data);
  add_of_step(data);
}

}  // namespace lockstep::launcher
