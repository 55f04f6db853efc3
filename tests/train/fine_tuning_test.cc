// data.examples: runs in which only the tokens to be learnt count in the loss.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/ops/factory/literal.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/data/example_files.h"
#include "tests/train/rank_runs.h"
#include "train/weights.h"

namespace lockstep::train {
namespace {

/// Completions of 1 to 9 tokens, so that micro-batches have unlike numbers of them.
std::string put_examples(const TemporaryDirectory& folder) {
  std::string lines;
  for (int i = 0; i < 80; ++i) {
    lines +=
        example_line(fmt::format("{}+{}=", i % 10, i % 7),
                     std::string(static_cast<size_t>(1 + i % 9), static_cast<char>('a' + i % 3)));
  }
  put_file(folder / "sft.jsonl", lines);
  return (folder / "sft.jsonl").string();
}

class FineTuning : public testing::Test {
 protected:
  std::string examples(const std::string& more = "") const {
    return "data { examples { path: \"" + path_ + "\" " + more + " } order: SHUFFLED } ";
  }
  config::RunConfig run(const std::string& more) const { return layered_run(folder_, more); }

  TemporaryDirectory folder_;
  const std::string path_ = put_examples(folder_);
};

/// Sum of -log p of the targets that are not ignored, and their number.
struct Summed {
  double loss = 0;
  int64_t targets = 0;
};

Summed sum_by_hand(const Tensor& logits, const std::vector<int64_t>& targets) {
  const Tensor log_p = log_softmax(logits.detach().to(DType::kF64), -1);
  Summed sum;
  const int64_t classes = log_p.size(-1);
  for (int64_t i = 0; i < std::ssize(targets); ++i) {
    const int64_t target = targets[static_cast<size_t>(i)];
    if (target == kIgnoredTarget) continue;
    sum.loss -= log_p.data<double>()[i * classes + target];
    ++sum.targets;
  }
  return sum;
}

TEST_F(FineTuning, TheLossIsTheMeanOverAllTokensThatCountInABatch) {
  const std::string base = "model { gpt2 { dropout: 0 } } data { attention: ACROSS_DOCUMENTS } ";
  for (const char* rows : {"PACKED", "PADDED"}) {
    const config::RunConfig config =
        run(base + examples(fmt::format("rows: {}", rows)) + "train { micro_batch_size: 2 }");
    Trainer trainer = Trainer::create(config);
    const std::unique_ptr<TokenSource> source = build_source(config);
    Summed all;
    double mean_of_means = 0;
    {
      const NoGradGuard no_grad;
      for (int64_t i = 0; i < 8; ++i) {
        std::vector<int64_t> inputs(16), targets(16);
        source->sequence(0, i, inputs, targets);
        const Tensor tokens = tensor(inputs).view({1, 16});
        auto& model = dynamic_cast<nn::LanguageModel&>(trainer.task().model());
        const Summed each = sum_by_hand(model.forward(tokens), targets);
        all.loss += each.loss;
        all.targets += each.targets;
        mean_of_means += each.loss / static_cast<double>(each.targets) / 8;
      }
    }
    EXPECT_LT(all.targets, 8 * 16 * 3 / 4);
    const double mean = all.loss / static_cast<double>(all.targets);
    EXPECT_NEAR(trainer.step().loss, mean, 1e-6 * mean) << rows;
    EXPECT_GT(std::abs(mean - mean_of_means), 1e-5 * mean);  // the test would tell them apart
  }
}

TEST_F(FineTuning, TheHeldOutLossIsTheMeanOverItsTokensThatCount) {
  const config::RunConfig config =
      run(examples("held_out_examples: 7") + "data { attention: ACROSS_DOCUMENTS }");
  Trainer trainer = Trainer::create(config);
  const std::unique_ptr<TokenSource> source = build_source(config);
  auto& model = dynamic_cast<nn::LanguageModel&>(trainer.task().model());
  model.eval();
  Summed all;
  {
    const NoGradGuard no_grad;
    for (int64_t i = 0; i < source->validation_windows(16); ++i) {
      std::vector<int64_t> inputs(16), targets(16);
      source->validation_window(i, inputs, targets);
      const Summed each = sum_by_hand(model.forward(tensor(inputs).view({1, 16})), targets);
      all.loss += each.loss;
      all.targets += each.targets;
    }
  }
  const std::optional<Evaluation> found = trainer.evaluate(0);
  EXPECT_EQ(found->targets, all.targets);
  EXPECT_NEAR(found->loss, all.loss / static_cast<double>(all.targets), 1e-6 * found->loss);
}

TEST_F(FineTuning, MicroBatchesChangeTheRoundingAlone) {
  const std::string base = examples() + "model { gpt2 { dropout: 0 } } ";
  const Trace whole = trace(run(base), 3);
  const Trace parts = trace(run(base + "train { micro_batch_size: 1 }"), 3);
  for (size_t i = 0; i < whole.losses.size(); ++i) {
    EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-5 * whole.losses[i]);
    EXPECT_NEAR(parts.norms[i], whole.norms[i], 1e-4 * whole.norms[i]);
  }
}

TEST_F(FineTuning, NumberOfRanksAndStrategyChangeNoBitWithBitwise) {
  for (const char* rows : {"PACKED", "PADDED"}) {
    const std::string base = examples(fmt::format("rows: {}", rows)) +
                             "reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 }";
    const Trace one = trace(run(base), 3);
    for (const int ranks : {2, 4}) {
      for (const char* strategy : {"DDP", "FULL_SHARD"}) {
        const std::string parallel = fmt::format(" parallel {{ strategy: {} }}", strategy);
        for (const Trace& each : traces(run(base + parallel), ranks, 3)) {
          EXPECT_EQ(each, one) << rows << strategy << ranks;
        }
      }
    }
  }
}

TEST_F(FineTuning, AResumedRunGoesOnWithTheSameBits) {
  for (const int ranks : {1, 2}) {
    expect_exact_resume(examples() + "train { micro_batch_size: 2 }", ranks);
  }
}

TEST_F(FineTuning, LearnsAnAnswerAndShowsIt) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += example_line("say x: ", "xxxx");
  put_file(folder_ / "x.jsonl", lines);
  const config::RunConfig config =
      run("data { examples { path: \"" + (folder_ / "x.jsonl").string() + "\" rows: PADDED } } " +
          "model { gpt2 { dropout: 0 } } optimizer { learning_rate: 1e-2 } " +
          "schedule { kind: CONSTANT }");
  Trainer trainer = Trainer::create(config);
  const double before = trainer.evaluate(0)->loss;
  for (int i = 0; i < 100; ++i) trainer.step();
  EXPECT_LT(trainer.evaluate(0)->loss, 0.2 * before);
  EXPECT_TRUE(trainer.sample_text(4, 1).starts_with("say x: x"));
}

TEST_F(FineTuning, WithinDocumentsAPackedExampleHasTheLossThatItHasAlone) {
  const auto held_out_loss = [&](const std::string& more, const char* attention) {
    return Trainer::create(run("model { gpt2 { dropout: 0 } } " + examples(more) +
                               "data { attention: " + attention + " }"))
        .evaluate(0)
        ->loss;
  };
  const double alone = held_out_loss("rows: PADDED", "ACROSS_DOCUMENTS");
  const double within = held_out_loss("rows: PACKED", "WITHIN_DOCUMENTS");
  EXPECT_NEAR(within, alone, 1e-6 * alone);
  EXPECT_GT(std::abs(held_out_loss("rows: PACKED", "ACROSS_DOCUMENTS") - alone), 1e-5 * alone);
  EXPECT_EQ(run(examples()).data().attention(), config::DataConfig::WITHIN_DOCUMENTS);
}

TEST_F(FineTuning, MoreCannotBeHeldOutThanThereIs) {
  EXPECT_TRUE(says(
      message_of<DataError>([&] { Trainer::create(run(examples("held_out_examples: 1000"))); }),
      "cannot hold out 1000 of "));
  const config::RunConfig config = run(examples("validation: \"" + path_ + "\""));
  EXPECT_GT(build_source(config)->validation_windows(16), 0);
}

TEST_F(FineTuning, TheConfigNamesTheMembersOfALine) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "{\"question\": \"why? \", \"answer\": \"so\"}\n";
  put_file(folder_ / "asked.jsonl", lines);
  const auto create = [&](const std::string& form) {
    return Trainer::create(run("data { examples { path: \"" + (folder_ / "asked.jsonl").string() +
                               "\" completion { " + form + " } } }"));
  };
  EXPECT_TRUE(
      create("prompt: 'question' completion: 'answer'").sample_text(1, 1).starts_with("why? "));
  EXPECT_TRUE(says(message_of<DataError>([&] { create("completion: 'answer'"); }), "\"prompt\""));
  EXPECT_TRUE(says(message_of<DataError>([&] { create("prompt: 'question'"); }), "\"completion\""));
}

TEST_F(FineTuning, ALineThatIsNoExampleEndsTheRunWithItsFileAndLine) {
  put_file(folder_ / "bad.jsonl", example_line("a", "b") + example_line("a", ""));
  const std::string bad = "path: \"" + (folder_ / "bad.jsonl").string() + "\"";
  EXPECT_TRUE(says(
      message_of<DataError>([&] { Trainer::create(run("data { examples { " + bad + " } }")); }),
      "bad.jsonl:2: \"completion\" is empty: expected a text to learn. Repair"));
}

TEST_F(FineTuning, AMixtureOfExamplesHasItsBitsOnAnyRanksAndResumed) {
  std::string lines;
  for (int i = 0; i < 30; ++i)
    lines += example_line("more", std::string(static_cast<size_t>(1 + i % 4), 'x'));
  put_file(folder_ / "more.jsonl", lines);
  put_file(folder_ / "text.txt", std::string(4000, 't'));
  const std::string mixture = "data { mixture { source { examples { path: \"" + path_ +
                              "\" } weight: 2 } source { examples { path: \"" +
                              (folder_ / "more.jsonl").string() +
                              "\" rows: PADDED } } source { text { path: \"" +
                              (folder_ / "text.txt").string() + "\" } } } order: SHUFFLED } ";
  const config::RunConfig config = run(mixture);
  EXPECT_EQ(config.data().attention(), config::DataConfig::WITHIN_DOCUMENTS);
  const std::string bitwise =
      mixture + "reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 }";
  const Trace one = trace(run(bitwise), 3);
  for (const Trace& each : traces(run(bitwise), 2, 3)) EXPECT_EQ(each, one);
  expect_exact_resume(mixture, 2);
}

}  // namespace
}  // namespace lockstep::train
