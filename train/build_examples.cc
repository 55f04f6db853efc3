#include "train/build_examples.h"

#include <utility>

#include "configs/data.pb.h"
#include "core/base/check.h"
#include "data/example_data.h"
#include "data/tokenized_text.h"

namespace lockstep::train {
namespace {

// `From` is data.examples of a config, or examples of a mixture.

template <class From>
ExampleForm form_of(const From& from) {
  ExampleForm form{.skip_damaged_lines = from.skip_damaged_lines()};
  if (from.has_chat()) {
    form.chat = ChatForm{.field = from.chat().messages(),
                         .begin = from.chat().begin(),
                         .end = from.chat().end(),
                         .trained_role = from.chat().trained_role()};
    return form;
  }
  form.prompt = from.completion().prompt();
  form.completion = from.completion().completion();
  form.special = from.completion().special_tokens();
  return form;
}

LongExample long_example(config::ExampleData::TooLong from) {
  if (from == config::ExampleData::LEAVE_OUT) return LongExample::kLeaveOut;
  return from == config::ExampleData::REFUSE ? LongExample::kRefuse : LongExample::kCut;
}

template <class From>
ExampleSet hold_out(const From& from, const ExampleForm& form, const ExampleEncoding& encoding,
                    const TokenCache& cache, ExampleSet& training) {
  if (!from.validation().empty()) return {from.validation(), form, encoding, cache};
  const int64_t wanted = from.held_out_examples();
  LS_CHECK(wanted < training.count(), DataError,
           "[data] {}: cannot hold out {} of {} examples. Hold out fewer.", from.path(), wanted,
           training.count());
  return training.take_last(wanted > 0 ? wanted : training.count() / 10);
}

template <class From>
std::unique_ptr<TokenSource> rows_of(const From& from, ExampleDataOptions options,
                                     const TokenCache& cache) {
  const ExampleForm form = form_of(from);
  const ExampleEncoding encoding{.tokenizer = options.tokenizer,
                                 .begin_of_text = from.begin_of_text(),
                                 .end = from.completion().end(),
                                 .longest = options.length + 1,
                                 .too_long = long_example(from.too_long())};
  options.packed = from.rows() == config::ExampleData::PACKED;
  ExampleSet training(from.path(), form, encoding, cache);
  ExampleSet held_out = hold_out(from, form, encoding, cache, training);
  return std::make_unique<ExampleData>(std::move(training), std::move(held_out),
                                       std::move(options));
}

ExampleDataOptions options_of(const config::DataConfig& data, const DataRequest& request,
                              std::shared_ptr<const Tokenizer> tokenizer) {
  return {.vocabulary = request.vocabulary,
          .length = request.length,
          .seed = request.seed,
          .order = data.order() == config::DataConfig::SHUFFLED ? WindowOrder::kShuffled
                                                                : WindowOrder::kRandom,
          .sequences_per_step = request.sequences_per_step,
          .tokenizer = std::move(tokenizer)};
}

}  // namespace

std::unique_ptr<TokenSource> build_examples(const config::DataConfig& data,
                                            const DataRequest& request) {
  const config::ExampleData& from = data.examples();
  std::shared_ptr<const Tokenizer> tokenizer =
      build_tokenizer(from.tokenizer(), Documents::together({}), "");
  check_vocabulary(*tokenizer, request);
  return rows_of(from, options_of(data, request, std::move(tokenizer)),
                 TokenCache(from.cache_dir()));
}

std::unique_ptr<TokenSource> build_mixed_examples(const config::DataConfig& data,
                                                  const config::MixtureExamples& from,
                                                  const DataRequest& request,
                                                  std::shared_ptr<const Tokenizer> tokenizer) {
  return rows_of(from, options_of(data, request, std::move(tokenizer)),
                 TokenCache(data.mixture().cache_dir()));
}

}  // namespace lockstep::train
