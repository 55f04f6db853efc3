// data.attention: WITHIN_DOCUMENTS in runs on text.

#include <gtest/gtest.h>

#include <string>

#include "data/tokenizers/bpe_tokenizer.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

/// Documents of unlike sizes, so that sequences of 16 tokens hold parts of several.
std::string text_of_documents(const TemporaryDirectory& folder) {
  std::string lines;
  for (int i = 0; i < 300; ++i) {
    lines += fmt::format("{{\"text\": \"the {} {}\"}}\n", i % 7, std::string(i % 11, 'a'));
  }
  put_file(folder / "texts.jsonl", lines);
  make_bpe(the_bpe(), folder);
  return fmt::format(
      "model {{ gpt2 {{ vocab_size: 300 }} }} data {{ text {{ path: \"{0}/texts.jsonl\" cache_dir: "
      "\"\" tokenizer {{ bpe {{ vocab: \"{0}/vocab.json\" merges: \"{0}/merges.txt\" }} }} }} }} ",
      folder.path().string());
}

const std::string kWithin = "data { attention: WITHIN_DOCUMENTS } ";

TEST(WithinDocuments, SequencesAreCutWhereAnEndOfTextTokenBeginsADocument) {
  const TemporaryDirectory folder;
  const std::unique_ptr<TokenSource> source =
      build_source(layered_run(folder, text_of_documents(folder) + kWithin));
  const int64_t end = *source->tokenizer()->end_of_text();
  for (int64_t i = 0; i < 8; ++i) {
    std::vector<int64_t> inputs(16), targets(16);
    source->sequence(3, i, inputs, targets);
    int64_t place = 0;
    for (const int64_t size : source->documents(3, i, 16)) {
      EXPECT_TRUE(place == 0 || inputs[static_cast<size_t>(place)] == end);
      for (int64_t t = place + 1; t < place + size; ++t) {
        EXPECT_NE(inputs[static_cast<size_t>(t)], end);
      }
      place += size;
    }
    EXPECT_EQ(place, 16);
  }
}

TEST(WithinDocuments, ChangesTrainingAndEvaluation) {
  const TemporaryDirectory folder;
  const std::string text = text_of_documents(folder);
  Trainer across = Trainer::create(layered_run(folder, text)),
          within = Trainer::create(layered_run(folder, text + kWithin));
  EXPECT_NE(within.evaluate(0)->loss, across.evaluate(0)->loss);
  EXPECT_EQ(within.evaluate(0)->targets, across.evaluate(0)->targets);
  EXPECT_NE(within.step().loss, across.step().loss);
}

TEST(WithinDocuments, NumberOfRanksAndStrategyChangeNoBitWithBitwise) {
  const TemporaryDirectory folder;
  const std::string base = text_of_documents(folder) + kWithin +
                           "reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 } ";
  for (const char* model : {"", "model { recompute: BLOCK } "}) {
    const Trace one = trace(layered_run(folder, base + model), 3);
    for (const char* strategy : {"DDP", "FULL_SHARD"}) {
      const std::string parallel = fmt::format("parallel {{ strategy: {} }}", strategy);
      for (const Trace& each : traces(layered_run(folder, base + model + parallel), 4, 3)) {
        EXPECT_EQ(each, one) << strategy << model;
      }
    }
  }
}

TEST(WithinDocuments, AResumedRunGoesOnWithTheSameBits) {
  const TemporaryDirectory folder;
  expect_exact_resume(text_of_documents(folder) + kWithin, 2);
}

}  // namespace
}  // namespace lockstep::train
