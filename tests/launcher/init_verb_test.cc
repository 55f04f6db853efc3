// `lockstep init`: configs to start from.

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

class Init : public Program {
 protected:
  /// A text of about `bytes` bytes in which words return.
  void put_text(const std::string& name, size_t bytes) const {
    std::string text;
    for (size_t i = 0; text.size() < bytes; ++i) {
      text += fmt::format("In line {} the {} cat sat on the \"mat\" number {}.\n", i,
                          i % 3 == 0 ? "old" : "young", i * 7919 % 1000);
    }
    put_file(folder_ / name, text);
  }
};

TEST_F(Init, AShortTextIsTrainedByBytes) {
  put_text("my text.txt", 20000);
  const Result written = run("init text 'my text.txt'");
  ASSERT_EQ(written.status, 0) << written.errors;
  EXPECT_TRUE(says(written.output, "wrote my text.txtpb: "));
  EXPECT_TRUE(says(written.output, "next: lockstep train 'my text.txtpb'"));
  const std::string config = file_content(folder_ / "my text.txtpb");
  EXPECT_TRUE(says(config, "path: \"my text.txt\""));
  EXPECT_TRUE(says(config, "tokenizer { byte {} }"));
  EXPECT_EQ(run("config check 'my text.txtpb'").status, 0);
}

TEST_F(Init, ALongerTextGetsATokenizerOfItsOwnAndTrains) {
  put_text("mine.txt", 300000);
  const Result written = run("init text mine.txt");
  ASSERT_EQ(written.status, 0) << written.errors;
  const std::string config = file_content(folder_ / "mine.txtpb");
  EXPECT_TRUE(says(config, "tokenizer { bpe { vocab_size: 512 } }"));
  EXPECT_TRUE(says(config, "vocab_size: 512\n"));
  const Result trained =
      run("train mine.txtpb --steps 2 --set train.batch_size=1 --set train.sample_every=0 --set "
          "train.sample_bytes=8 --set model.llama.layers=1 --run-dir out");
  ASSERT_EQ(trained.status, 0) << trained.errors;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/merges.txt"));
  EXPECT_EQ(run("sample out --num-samples 1 --max-new-tokens 3").status, 0);
}

TEST_F(Init, EverySizeIsAConfigThatLoads) {
  put_text("mine.txt", 220000);
  for (const std::string size : {"small", "medium", "124m"}) {
    const Result result = run("init text mine.txt --size " + size + " -o " + size + ".txtpb");
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(run("config print " + size + ".txtpb").status, 0);
  }
  EXPECT_EQ(run("init text mine.txt --size 12m").status, 2);
}

TEST_F(Init, NothingIsOverwrittenAndUnfitTextsAreRefused) {
  put_text("mine.txt", 20000);
  EXPECT_EQ(run("init text mine.txt").status, 0);
  const Result again = run("init text mine.txt");
  EXPECT_EQ(again.status, 2);
  EXPECT_TRUE(says(again.errors, "mine.txtpb exists already"));
  put_text("short.txt", 500);
  EXPECT_EQ(run("init text short.txt").status, 3);
  put_file(folder_ / "zeros.bin", std::string(5000, '\0'));
  EXPECT_EQ(run("init text zeros.bin").status, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "zeros.txtpb"));
}

TEST_F(Init, TrainGoesOnWithTheConfig) {
  put_text("mine.txt", 20000);
  // A limit on the steps comes from the environment, as the verb takes none.
  const Result result = run("init text mine.txt --train",
                            "LOCKSTEP_TRAIN_STEPS=1 LOCKSTEP_TRAIN_BATCH_SIZE=1 "
                            "LOCKSTEP_TRAIN_SAMPLE_BYTES=4");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.output, "run        runs/mine-")) << result.output;
}

}  // namespace
}  // namespace lockstep::launcher
