#include "train/build_data.h"

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "configs/data.pb.h"
#include "configs/data_checks.h"
#include "core/base/check.h"
#include "core/base/files/text_files.h"
#include "data/program_source.h"
#include "data/text_data.h"
#include "data/token_cache.h"
#include "data/token_data.h"
#include "data/token_mixture.h"
#include "data/token_shards.h"
#include "data/tokenized_text.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/bpe_training.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/json_tokenizer.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"
#include "data/tokenizers/sentencepiece_training.h"
#include "train/build_examples.h"

namespace lockstep::train {
namespace {

using config::DataConfig;
using config::ShardData;

/// The content of a tokenizer of `kind` that `make` trains on the documents, from the cache if it
/// is there. `version` is that of the training, a part of the key.
std::string trained(const char* kind, uint64_t version, const Documents& documents,
                    int64_t vocabulary, const TokenCache& cache,
                    const std::function<std::string(const std::string& text)>& make) {
  const ContentHash key = ContentHasher()
                              .add(version)
                              .add(static_cast<uint64_t>(vocabulary))
                              .add(documents.hash())
                              .result();
  if (const std::optional<TokenCache::Entry> entry = cache.find(kind, key)) {
    return {reinterpret_cast<const char*>(entry->bytes.data()), entry->bytes.size()};
  }
  documents.check_is_text();
  std::string content = make(documents.joined());
  cache.store(kind, key, std::array{std::as_bytes(std::span(content))});
  return content;
}

std::shared_ptr<const Tokenizer> trained_bpe(const Documents& documents, int64_t vocabulary,
                                             const TokenCache& cache) {
  constexpr uint64_t kVersion = 1;
  constexpr char kBetween = '\0';  // the two files in one entry
  const std::string content =
      trained("bpe", kVersion, documents, vocabulary, cache, [&](const std::string& text) {
        const TrainedBpe files = train_bpe(text, vocabulary);
        return files.vocabulary + kBetween + files.merges;
      });
  const size_t middle = content.find(kBetween);
  return std::make_shared<BpeTokenizer>(content.substr(0, middle),
                                        middle == content.npos ? "" : content.substr(middle + 1),
                                        "the tokenizer trained on " + documents.name());
}

std::shared_ptr<const Tokenizer> trained_sentencepiece(const Documents& documents,
                                                       int64_t vocabulary,
                                                       const TokenCache& cache) {
  constexpr uint64_t kVersion = 1;
  return std::make_shared<SentencePieceTokenizer>(
      trained("sentencepiece", kVersion, documents, vocabulary, cache,
              [&](const std::string& text) { return train_sentencepiece(text, vocabulary); }),
      "the model trained on " + documents.name());
}

TokenDataOptions options_for(const DataConfig& data, const DataRequest& request,
                             std::shared_ptr<const Tokenizer> tokenizer) {
  TokenDataOptions options;
  options.vocabulary = request.vocabulary;
  options.seed = request.seed;
  options.order =
      data.order() == DataConfig::SHUFFLED ? WindowOrder::kShuffled : WindowOrder::kRandom;
  options.sequences_per_step = request.sequences_per_step;
  options.tokenizer = std::move(tokenizer);
  return options;
}

/// What is trained on and what is held out.
struct Parts {
  std::vector<TokenPart> training;
  std::vector<TokenPart> held_out;
};

int64_t held_out_bytes(int64_t wanted, int64_t bytes) { return wanted > 0 ? wanted : bytes / 10; }

JsonLinesOptions json_lines_options(const config::JsonLines& from) {
  return {.field = from.field(),
          .separator = from.separator(),
          .skip_damaged_lines = from.skip_damaged_lines()};
}

/// `From` is a text of a config, on its own or of a mixture.
template <class From>
Parts text_parts(const From& from, const Documents& documents, const Tokenizer& tokenizer,
                 const TokenCache& cache) {
  const int64_t held_out = held_out_bytes(from.held_out_bytes(), documents.bytes());
  const TokenizedText text = tokenize(documents, held_out, tokenizer, cache);
  Parts parts;
  parts.training.push_back(
      {from.path(), text.training(), std::make_shared<const Documents>(documents)});
  if (text.held_out().size() > 1) parts.held_out.push_back({from.path(), text.held_out()});
  return parts;
}

std::unique_ptr<TokenSource> build_text(const DataConfig& data, const DataRequest& request) {
  const config::TextData& from = data.text();
  const std::vector<std::filesystem::path> files = find_files(from.path());
  if (from.tokenizer().has_byte() && files.size() == 1 && !is_json_lines(files[0]) &&
      data.order() != DataConfig::SHUFFLED) {
    check_vocabulary(ByteTokenizer(), request);
    std::error_code unreadable;  // ignored: ByteText reports it with the reason
    const auto size = static_cast<int64_t>(std::filesystem::file_size(files[0], unreadable));
    return std::make_unique<ByteText>(
        files[0], held_out_bytes(from.held_out_bytes(), unreadable ? 0 : size), request.seed);
  }
  const Documents documents(from.path(), json_lines_options(from.json_lines()));
  const std::shared_ptr<const Tokenizer> tokenizer =
      build_tokenizer(from.tokenizer(), documents, from.cache_dir());
  check_vocabulary(*tokenizer, request);
  Parts parts = text_parts(from, documents, *tokenizer, TokenCache(from.cache_dir()));
  TokenDataOptions options = options_for(data, request, tokenizer);
  options.notes = documents.notes();
  return std::make_unique<TokenData>(std::move(parts.training), std::move(parts.held_out),
                                     std::move(options));
}

std::vector<TokenPart> open_shards(const std::string& pattern, ShardFormat format) {
  std::vector<TokenPart> parts;
  for (const std::filesystem::path& path : find_files(pattern)) {
    parts.push_back({path.string(), open_shard(path, format).tokens});
  }
  return parts;
}

/// Moves the last `count` tokens to a part of their own, with the token before them as context.
std::vector<TokenPart> hold_out(std::vector<TokenPart>& parts, int64_t count) {
  if (count == 0) return {};
  TokenPart& last = parts.back();
  const int64_t size = last.tokens.size();
  LS_CHECK(count < size, DataError,
           "[data] {}: cannot hold out {} tokens of the last shard's {}. Hold out fewer.",
           last.name, count, size);
  std::vector<TokenPart> held_out = {{last.name, last.tokens.slice(size - count - 1, count + 1)}};
  last.tokens = last.tokens.slice(0, size - count);
  return held_out;
}

/// `From` are token files of a config, on their own or of a mixture.
template <class From>
Parts shard_parts(const From& from) {
  const ShardFormat format =
      from.format() == ShardData::NANOGPT ? ShardFormat::kNanogpt : ShardFormat::kLlmc;
  Parts parts{.training = open_shards(from.train(), format)};
  parts.held_out = from.validation().empty() ? hold_out(parts.training, from.held_out_tokens())
                                             : open_shards(from.validation(), format);
  return parts;
}

/// The tokenizer whose files a source of tokens names, checked; null if it names none.
template <class From>
std::shared_ptr<const Tokenizer> named_tokenizer(const From& from, const DataRequest& request) {
  std::shared_ptr<const Tokenizer> tokenizer;
  if (from.has_bpe()) {
    tokenizer = std::make_shared<BpeTokenizer>(from.bpe().vocab(), from.bpe().merges());
  } else if (from.has_hugging_face()) {
    tokenizer = std::make_shared<JsonTokenizer>(from.hugging_face().file());
  }
  if (tokenizer) check_vocabulary(*tokenizer, request);
  return tokenizer;
}

std::unique_ptr<TokenSource> build_shards(const DataConfig& data, const DataRequest& request) {
  const ShardData& from = data.shards();
  std::shared_ptr<const Tokenizer> tokenizer = named_tokenizer(from, request);
  Parts parts = shard_parts(from);
  return std::make_unique<TokenData>(std::move(parts.training), std::move(parts.held_out),
                                     options_for(data, request, std::move(tokenizer)));
}

/// The tokenizer of a mixture with these texts; null if it is unknown, which with examples it is
/// not.
std::shared_ptr<const Tokenizer> mixture_tokenizer(const config::MixtureData& from,
                                                   const std::vector<Documents>& texts,
                                                   bool has_examples) {
  config::TokenizerConfig chosen;
  bool is_trained = false;
  if (from.has_bpe()) {
    *chosen.mutable_bpe() = from.bpe();
    is_trained = from.bpe().vocab().empty();
  } else if (from.has_sentencepiece()) {
    *chosen.mutable_sentencepiece() = from.sentencepiece();
    is_trained = from.sentencepiece().model().empty();
  } else if (from.has_hugging_face()) {
    *chosen.mutable_hugging_face() = from.hugging_face();
  } else if (from.has_byte() || !texts.empty() || has_examples) {
    chosen.mutable_byte();
  } else {
    return nullptr;
  }
  LS_CHECK(!is_trained || !texts.empty(), ConfigError,
           "[data] a mixture of {} has no text to train a tokenizer on: expected the files of the "
           "one that {}. Set them in data.mixture.",
           has_examples ? "examples" : "token files",
           has_examples ? "the weights know" : "made the tokens");
  const std::span<const Documents> all(texts);
  return build_tokenizer(chosen, Documents::together(all.first(is_trained ? all.size() : 0)),
                         from.cache_dir());
}

std::unique_ptr<TokenSource> build_mixture(const DataConfig& data, const DataRequest& request) {
  const config::MixtureData& from = data.mixture();
  std::vector<Documents> texts;
  for (const config::MixtureSource& source : from.source()) {
    if (!source.has_text()) continue;
    texts.emplace_back(source.text().path(), json_lines_options(source.text().json_lines()));
  }
  const std::shared_ptr<const Tokenizer> tokenizer =
      mixture_tokenizer(from, texts, config::has_examples(data));
  if (tokenizer) check_vocabulary(*tokenizer, request);
  std::vector<TokenMixture::Source> sources;
  auto text = texts.begin();
  for (const config::MixtureSource& source : from.source()) {
    DataRequest own = request;
    own.seed = TokenMixture::seed_of_source(request.seed, sources.size());
    own.sequences_per_step = 1;
    if (source.has_examples()) {
      sources.push_back(
          {build_mixed_examples(data, source.examples(), own, tokenizer), source.weight()});
      continue;
    }
    TokenDataOptions options = options_for(data, own, tokenizer);
    Parts parts;
    if (source.has_text()) {
      options.notes = text->notes();
      parts = text_parts(source.text(), *text++, *tokenizer, TokenCache(from.cache_dir()));
    } else {
      parts = shard_parts(source.shards());
    }
    sources.push_back({std::make_unique<TokenData>(std::move(parts.training),
                                                   std::move(parts.held_out), std::move(options)),
                       source.weight()});
  }
  return std::make_unique<TokenMixture>(std::move(sources), request.seed,
                                        request.sequences_per_step);
}

std::unique_ptr<TokenSource> build_program(const DataConfig& data, const DataRequest& request) {
  const config::ProgramData& from = data.program();
  std::shared_ptr<const Tokenizer> tokenizer = named_tokenizer(from, request);
  if (from.has_byte()) {
    tokenizer = std::make_shared<ByteTokenizer>();
    check_vocabulary(*tokenizer, request);
  }
  return std::make_unique<ProgramSource>(
      ProgramSourceOptions{.command = from.command(),
                           .timeout = std::chrono::ceil<std::chrono::milliseconds>(
                               std::chrono::duration<double>(from.timeout_seconds())),
                           .vocabulary = request.vocabulary,
                           .seed = request.seed,
                           .sequences_per_step = request.sequences_per_step,
                           .length = request.length,
                           .tokenizer = std::move(tokenizer)});
}

}  // namespace

void check_vocabulary(const Tokenizer& tokenizer, const DataRequest& request) {
  LS_CHECK(
      tokenizer.vocabulary() <= request.vocabulary, ConfigError,
      "[data] the {} tokenizer has {} tokens: expected a model with vocab_size {} or more, got "
      "{}. Set vocab_size of the model.",
      tokenizer.name(), tokenizer.vocabulary(), tokenizer.vocabulary(), request.vocabulary);
}

std::shared_ptr<const Tokenizer> build_tokenizer(const config::TokenizerConfig& config,
                                                 const Documents& documents,
                                                 const std::string& cache_folder) {
  if (config.has_bpe()) {
    const config::BpeTokenizerConfig& from = config.bpe();
    if (from.vocab().empty()) {
      return trained_bpe(documents, from.vocab_size(), TokenCache(cache_folder));
    }
    return std::make_shared<BpeTokenizer>(from.vocab(), from.merges());
  }
  if (config.has_hugging_face()) {
    return std::make_shared<JsonTokenizer>(config.hugging_face().file());
  }
  if (!config.has_sentencepiece()) return std::make_shared<ByteTokenizer>();
  const config::SentencePieceConfig& from = config.sentencepiece();
  if (!from.model().empty()) return std::make_shared<SentencePieceTokenizer>(from.model());
  return trained_sentencepiece(documents, from.vocab_size(), TokenCache(cache_folder));
}

std::unique_ptr<TokenSource> build_data(const DataConfig& data, const DataRequest& request) {
  std::unique_ptr<TokenSource> source;
  if (data.has_text()) source = build_text(data, request);
  if (data.has_shards()) source = build_shards(data, request);
  if (data.has_mixture()) source = build_mixture(data, request);
  if (data.has_program()) source = build_program(data, request);
  if (data.has_examples()) return build_examples(data, request);
  if (source) {
    const Tokenizer* const tokenizer = source->tokenizer();
    LS_CHECK(data.attention() != DataConfig::WITHIN_DOCUMENTS || config::has_examples(data) ||
                 (tokenizer != nullptr && tokenizer->end_of_text()),
             ConfigError,
             "[data] attention is WITHIN_DOCUMENTS, but no tokenizer with an end-of-text token is "
             "known: expected one, whose token begins each document. Choose ACROSS_DOCUMENTS.");
    return source;
  }
  return std::make_unique<RandomTokens>(request.vocabulary, request.seed);
}

}  // namespace lockstep::train
