// The example configs, each trained at a reduced size.

#include <gtest/gtest.h>

#include "tests/data/table_file.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

class ExampleTest : public Program {
 protected:
  ExampleTest() {
    std::string text;
    for (int i = 0; i < 4000; ++i) text += fmt::format("{} is {} and {}.\n", i, i % 7, i % 11);
    put_file(folder_ / "text.txt", text);
    train::put_table(folder_ / "digits.csv", 400, 64, 10);
  }
  /// Trains three steps of an example with `smaller` merged into it, and checks the run directory.
  void train(const std::string& example, const std::string& smaller) const {
    put_file(folder_ / "smaller.txtpb", smaller);
    const Result result =
        run(fmt::format("train '{}/configs/{}.txtpb' smaller.txtpb --steps 3 --run-dir run "
                        "--set train.sample_bytes=0",
                        LOCKSTEP_SOURCE_DIR, example));
    ASSERT_EQ(result.status, 0) << result.errors;
    const std::string metrics = file_content(folder_ / "run/metrics.jsonl");
    EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);
    EXPECT_TRUE(says(metrics, "val_loss"));
    EXPECT_EQ(run("checkpoint verify run").status, 0);
    // Training again from the config of the run gives the same bits.
    const Result again = run("train run/config.txtpb --run-dir again");
    ASSERT_EQ(again.status, 0) << again.errors;
    EXPECT_EQ(run("compare run again").status, 0);
    EXPECT_EQ(file_content(folder_ / "run/model.safetensors"),
              file_content(folder_ / "again/model.safetensors"));
  }
};

constexpr const char* kSmallText = R"(
data { text { path: "text.txt" held_out_bytes: 2000 } }
train { batch_size: 2 micro_batch_size: 1 leaves: 1 eval_every: 0 }
)";

TEST_F(ExampleTest, GptOnTheBible) {
  train("gpt_kjv", std::string(kSmallText) +
                       "model { gpt2 { context_length: 16 layers: 1 heads: 2 width: 16 } }");
}

TEST_F(ExampleTest, LlamaOnTheBible) {
  train("llama_kjv", std::string(kSmallText) +
                         "model { llama { context_length: 16 layers: 1 heads: 4 kv_heads: 2 width: "
                         "32 hidden_width: 64 } }");
}

TEST_F(ExampleTest, BestOnTheBible) {
  train("kjv_best", std::string(kSmallText) +
                        "model { llama { context_length: 16 layers: 1 heads: 2 width: 32 "
                        "hidden_width: 64 } }");
}

TEST_F(ExampleTest, Llama) {
  train("llama",
        "data { text { path: \"text.txt\" held_out_bytes: 2000"
        "  tokenizer { sentencepiece { vocab_size: 300 } } } }"
        "train { batch_size: 2 micro_batch_size: 1 leaves: 1 eval_every: 0 }"
        "model { llama { context_length: 16 layers: 1 heads: 4 kv_heads: 2 width: 32 "
        "hidden_width: 64 vocab_size: 300 } }");
}

TEST_F(ExampleTest, Gpt2OnShards) {
  ASSERT_EQ(
      run("data tokenize text.txt -o train.bin --held-out-bytes 2000 --held-out-output val.bin")
          .status,
      0);
  train("gpt2_124m",
        "data { shards { train: \"train.bin\" validation: \"val.bin\" } }"
        "model { gpt2 { context_length: 16 layers: 1 heads: 2 width: 16 } }"
        "train { batch_size: 2 micro_batch_size: 1 leaves: 1 eval_every: 0 }");
}

TEST_F(ExampleTest, ResnetOnDigits) {
  train("resnet_digits",
        "data { table { path: \"digits.csv\" held_out_rows: 50 } }"
        "model { resnet { base_width: 4 blocks: [1, 1] } } train { batch_size: 8 eval_every: 0 }");
}

TEST_F(ExampleTest, MlpOnDigits) {
  train("mlp_digits",
        "data { table { path: \"digits.csv\" held_out_rows: 50 } }"
        "model { mlp { hidden_widths: [8] } } train { batch_size: 8 eval_every: 0 }");
}

}  // namespace
}  // namespace lockstep::launcher
