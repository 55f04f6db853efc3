#include "train/build_examples.h"

#include <utility>

#include "configs/data.pb.h"
#include "core/base/check.h"
#include "data/example_data.h"
#include "data/tokenized_text.h"

namespace lockstep::train {
namespace {

using From = config::ExampleData;

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

LongExample too_long(const From& from) {
  if (from.too_long() == From::LEAVE_OUT) return LongExample::kLeaveOut;
  return from.too_long() == From::REFUSE ? LongExample::kRefuse : LongExample::kCut;
}

ExampleSet hold_out(const From& from, const ExampleForm& form, const ExampleEncoding& encoding,
                    ExampleSet& training) {
  if (!from.validation().empty()) return {from.validation(), form, encoding};
  const int64_t wanted = from.held_out_examples();
  LS_CHECK(wanted < training.count(), DataError,
           "[data] {}: cannot hold out {} of {} examples. Hold out fewer.", from.path(), wanted,
           training.count());
  return training.take_last(wanted > 0 ? wanted : training.count() / 10);
}

}  // namespace

std::unique_ptr<TokenSource> build_examples(const config::DataConfig& data,
                                            const DataRequest& request) {
  const From& from = data.examples();
  const std::shared_ptr<const Tokenizer> tokenizer =
      build_tokenizer(from.tokenizer(), Documents::together({}), "");
  check_vocabulary(*tokenizer, request);
  const ExampleForm form = form_of(from);
  const ExampleEncoding encoding{.tokenizer = tokenizer,
                                 .begin_of_text = from.begin_of_text(),
                                 .end = from.completion().end(),
                                 .longest = request.length + 1,
                                 .too_long = too_long(from)};
  ExampleSet training(from.path(), form, encoding);
  ExampleSet held_out = hold_out(from, form, encoding, training);
  return std::make_unique<ExampleData>(
      std::move(training), std::move(held_out),
      ExampleDataOptions{.vocabulary = request.vocabulary,
                         .length = request.length,
                         .packed = from.rows() == From::PACKED,
                         .seed = request.seed,
                         .order = data.order() == config::DataConfig::SHUFFLED
                                      ? WindowOrder::kShuffled
                                      : WindowOrder::kRandom,
                         .sequences_per_step = request.sequences_per_step,
                         .tokenizer = tokenizer});
}

}  // namespace lockstep::train
