// The program from a user's point of view: exit codes, messages, files of a run.

#include "tests/launcher/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::launcher {
namespace {

class ProgramTest : public Program {
 protected:
  /// The result's output is standard output and error together.
  Result run(const std::string& arguments, const std::string& variables = "") const {
    return Program::run(arguments + " 2>&1", variables);
  }
  /// Writes a config that trains briefly.
  void write_config(const std::string& more = "") const {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "the quick brown fox. ";
    put_file(folder_ / "text.txt", text);
    put_file(folder_ / "run.txtpb",
             "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 8 } }\n"
             "data { text { path: \"text.txt\" held_out_bytes: 1000 } }\n"
             "train { steps: 6 batch_size: 2 eval_every: 3 sample_bytes: 20 }\n" +
                 more);
  }
};

TEST_F(ProgramTest, TrainLeavesACompleteRunDirectory) {
  write_config();
  const Result result = run("train run.txtpb --run-dir out");
  ASSERT_EQ(result.status, 0) << result.output;
  for (const char* name :
       {"config.txtpb", "environment.json", "metrics.jsonl", "model.safetensors", "config.json"}) {
    EXPECT_FALSE(file_content(folder_ / ("out/" + std::string(name))).empty()) << name;
  }
  const std::string metrics = file_content(folder_ / "out/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 6);
  for (const char* key : {"\"step\":6", "loss", "grad_norm", "lr", "step_ms", "tokens_per_s",
                          "memory_peak_bytes", "val_loss", "val_bits_per_byte"}) {
    EXPECT_TRUE(says(metrics, key));
  }
  EXPECT_TRUE(says(result.output, "bits per byte"));
  EXPECT_TRUE(says(result.output, "xz -9"));
}

TEST_F(ProgramTest, TrainTellsThePercentilesOfItsStepTimes) {
  write_config();
  const Result result = run("train run.txtpb --run-dir out --steps 60");
  ASSERT_EQ(result.status, 0) << result.output;
  std::vector<double> times;
  std::istringstream lines(file_content(folder_ / "out/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    times.push_back(nlohmann::json::parse(line)["step_ms"].get<double>());
  }
  ASSERT_EQ(times.size(), 60u);
  std::sort(times.begin(), times.end());
  const size_t at = result.output.find("step time  p50 ");
  ASSERT_NE(at, std::string::npos) << result.output;
  double p50 = 0, p90 = 0, p99 = 0;
  ASSERT_EQ(std::sscanf(result.output.c_str() + at, "step time  p50 %lf ms, p90 %lf ms, p99 %lf ms",
                        &p50, &p90, &p99),
            3);
  // Nearest ranks, accurate to 0.25 % and one decimal.
  EXPECT_NEAR(p50, times[29], 0.06 + 0.003 * times[29]);
  EXPECT_NEAR(p90, times[53], 0.06 + 0.003 * times[53]);
  EXPECT_NEAR(p99, times[59], 0.06 + 0.003 * times[59]);
}

TEST_F(ProgramTest, TrainingAgainFromTheRunsOwnConfigGivesTheSameWeights) {
  write_config();
  ASSERT_EQ(run("train run.txtpb --run-dir a").status, 0);
  ASSERT_EQ(run("train a/config.txtpb --run-dir b").status, 0);
  EXPECT_EQ(file_content(folder_ / "a/model.safetensors"),
            file_content(folder_ / "b/model.safetensors"));
  EXPECT_EQ(file_content(folder_ / "a/config.txtpb"), file_content(folder_ / "b/config.txtpb"));
}

TEST_F(ProgramTest, LoopsForWiderVectorsGiveTheSameBits) {
  write_config();
  ASSERT_EQ(run("train run.txtpb --run-dir a").status, 0);
  ASSERT_EQ(run("train run.txtpb --run-dir b", "LOCKSTEP_CPU_CAPABILITY=avx2").status, 0);
  EXPECT_EQ(file_content(folder_ / "a/model.safetensors"),
            file_content(folder_ / "b/model.safetensors"));
}

TEST_F(ProgramTest, SetAndStepsOverrideTheFile) {
  write_config();
  ASSERT_EQ(run("train run.txtpb --run-dir out --steps 2 --set seed=9").status, 0);
  const std::string config = file_content(folder_ / "out/config.txtpb");
  EXPECT_TRUE(says(config, "seed: 9"));
  EXPECT_TRUE(says(config, "steps: 2"));
}

TEST_F(ProgramTest, SampleContinuesAPromptAndRepeatsForOneSeed) {
  write_config();
  ASSERT_EQ(run("train run.txtpb --run-dir out").status, 0);
  const std::string options =
      "sample out --start 'the q' --num_samples 2 --max_new_tokens 30 --top_k 5 --seed 4";
  const Result first = run(options);
  ASSERT_EQ(first.status, 0) << first.output;
  EXPECT_TRUE(first.output.starts_with("the q"));
  EXPECT_EQ(first.output, run(options).output);
}

TEST_F(ProgramTest, SampleTellsTokensAndTheirLogProbabilitiesAsJson) {
  write_config();
  ASSERT_EQ(run("train run.txtpb --run-dir out").status, 0);
  const std::string command =
      "sample out --start ab --num-samples 2 --max-new-tokens 5 --json --in-run-precision";
  const Result result = run(command);
  ASSERT_EQ(result.status, 0) << result.output;
  std::istringstream lines(result.output);
  int texts = 0;
  for (std::string line; std::getline(lines, line); ++texts) {
    const auto text = nlohmann::json::parse(line);
    EXPECT_EQ(text["prompt_tokens"].size(), 2u);
    EXPECT_EQ(text["tokens"].size(), 5u);
    ASSERT_EQ(text["log_probabilities"].size(), 5u);
    for (const double each : text["log_probabilities"]) EXPECT_LT(each, 0);
  }
  EXPECT_EQ(texts, 2);
}

TEST_F(ProgramTest, ASampleEndsWhereADocumentEndsUnlessTold) {
  write_config();
  ASSERT_EQ(run("train run.txtpb --run-dir out --set data.text.tokenizer.bpe.vocab_size=260 "
                "--set model.gpt2.vocab_size=260")
                .status,
            0);
  const std::string command = "sample out --num-samples 1 --max-new-tokens 3000 --top-k 0 --json ";
  const auto whole = nlohmann::json::parse(run(command + "--ignore-eos").output);
  const std::vector<int64_t> tokens = whole["tokens"];
  ASSERT_EQ(tokens.size(), 3000u);
  // Nearly untrained, a model of 260 tokens draws the end of a document early.
  const std::vector<int64_t> ended = nlohmann::json::parse(run(command).output)["tokens"];
  ASSERT_LT(ended.size(), tokens.size());
  EXPECT_TRUE(std::ranges::equal(ended, std::span(tokens).first(ended.size())));
  EXPECT_EQ(std::ranges::count(ended, ended.back()), 1);
  EXPECT_TRUE(says(std::string(whole["text"]), "<|endoftext|>"));
}

TEST_F(ProgramTest, SamplesSendNoControlBytesToATerminal) {
  if (shell("command -v script").status != 0) GTEST_SKIP() << "no script(1)";
  write_config();
  ASSERT_EQ(run("train run.txtpb --run-dir out").status, 0);
  const std::string command = "sample out --num-samples 1 --max-new-tokens 400 --top-k 0";
  // Nearly untrained, a model of bytes writes any of them.
  const std::string bytes = run(command).output;
  ASSERT_NE(bytes.find_first_of("\x01\x02\x03\x04\x1b\x7f"), bytes.npos);
  const Result shown = shell(fmt::format("script -qec \"'{}/lockstep' {}\" /dev/null < /dev/null",
                                         LOCKSTEP_BIN_DIR, command));
  for (const char c : shown.output) {
    const auto byte = static_cast<unsigned char>(c);
    EXPECT_TRUE(byte >= 0x20 || c == '\n' || c == '\r' || c == '\t') << static_cast<int>(byte);
    EXPECT_NE(byte, 0x7f);
  }
}

TEST_F(ProgramTest, AMisspeltFieldIsNamedWithItsPlaceAndTheNearestName) {
  write_config("optimizer {\n  learning_rat: 1\n}\n");
  const Result result = run("train run.txtpb");
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(says(result.output, "run.txtpb:5:3: ConfigError: "));
  EXPECT_TRUE(says(result.output, "Did you mean \"learning_rate\"?"));
}

TEST_F(ProgramTest, WrongConfigsEndWithTwo) {
  write_config();
  for (const char* wrong :
       {"train missing.txtpb", "train run.txtpb --set train.steps=-1",
        "train run.txtpb --set train.steps=many", "train run.txtpb --set model.gpt2.heads=3",
        "train run.txtpb --set no.such=1", "train run.txtpb --set device=cuda", "train",
        "no-such-verb", "bench step run.txtpb --precision F17"}) {
    const Result result = run(wrong);
    EXPECT_EQ(result.status, 2) << wrong << "\n" << result.output;
    EXPECT_FALSE(result.output.empty()) << wrong;
  }
}

TEST_F(ProgramTest, MissingTextEndsWithThree) {
  write_config();
  const Result result = run("train run.txtpb --set data.text.path=absent.txt");
  EXPECT_EQ(result.status, 3);
  EXPECT_TRUE(says(result.output, "DataError: "));
  EXPECT_TRUE(says(result.output, "absent.txt"));
}

TEST_F(ProgramTest, ALossThatIsNotFiniteEndsWithSeven) {
  write_config("optimizer { learning_rate: 1000 clip_grad_norm: 0 sgd { } }\n");
  const Result result = run("train run.txtpb --steps 200");
  EXPECT_EQ(result.status, 7) << result.output;
  EXPECT_TRUE(says(result.output, "NonFiniteError: "));
}

TEST_F(ProgramTest, OpsListsOperatorsAndShowsATable) {
  EXPECT_TRUE(says(run("ops").output, "add.Tensor"));
  const Result table = run("ops mm");
  EXPECT_EQ(table.status, 0);
  EXPECT_TRUE(says(table.output, "mm(Tensor self, Tensor mat2) -> Tensor"));
  EXPECT_TRUE(says(table.output, "kernel at"));
  const Result unknown = run("ops softmx.int");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(says(unknown.output, "Did you mean \"softmax.int\"?"));
}

TEST_F(ProgramTest, BenchStepPrintsItsFiguresAsJson) {
  write_config();
  const Result result = run("bench step run.txtpb --steps 3 --threads 1 --json");
  ASSERT_EQ(result.status, 0) << result.output;
  for (const char* key : {"median_ms", "min_ms", "tokens_per_s", "gflops", "peak_memory_bytes"}) {
    EXPECT_TRUE(says(result.output, key));
  }
}

TEST_F(ProgramTest, BenchStepComputesInTheConfigsPrecisionUnlessToldOtherwise) {
  write_config();
  const std::string step = "bench step run.txtpb --steps 1 --threads 1 --json ";
  EXPECT_TRUE(says(run(step).output, R"("precision":"F32")"));
  EXPECT_TRUE(says(run(step + "--set precision=BF16_MIXED").output, R"("precision":"BF16_MIXED")"));
  EXPECT_TRUE(says(run(step + "--set precision=BF16_MIXED --precision F32").output,
                   R"("precision":"F32")"));
}

TEST_F(ProgramTest, BenchStepShowsTheTimeOfEachOperator) {
  write_config();
  const Result table = run("bench step run.txtpb --steps 2 --threads 1 --profile");
  ASSERT_EQ(table.status, 0) << table.output;
  // Operators whose share is small share a line, and a busy machine makes any share small.
  for (const char* word : {"GFLOP/s in f32", "operator", "between operators"}) {
    EXPECT_TRUE(says(table.output, word)) << table.output;
  }
  const Result json = run("bench step run.txtpb --steps 2 --threads 1 --profile --json");
  ASSERT_EQ(json.status, 0) << json.output;
  EXPECT_TRUE(says(json.output, R"("phase":"backward")"));
  EXPECT_TRUE(says(json.output, R"("phase":"optimizer","operator":"_fused_adamw_")"));
}

}  // namespace
}  // namespace lockstep::launcher
