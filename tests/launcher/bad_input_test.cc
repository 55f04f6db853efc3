// User errors: the message of the program and its exit status.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "launcher/exit_code.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

struct Mistake {
  std::string arguments;  ///< of lockstep train
  int status;
  std::string message;
};

class BadInput : public Program {
 protected:
  BadInput() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += fmt::format("line {} of the text\n", i);
    put_file(folder_ / "text.txt", text);
    put_config("run.txtpb");
  }
  void expect(const std::vector<Mistake>& mistakes) const {
    for (const Mistake& mistake : mistakes) {
      const Result result = run("train --run-dir out " + mistake.arguments);
      EXPECT_EQ(result.status, mistake.status) << mistake.arguments << "\n" << result.errors;
      EXPECT_TRUE(says(result.errors, mistake.message)) << mistake.arguments;
      EXPECT_EQ(result.errors.find("step 1/"), std::string::npos) << mistake.arguments;
      std::filesystem::remove_all(folder_ / "out");
    }
  }
  /// Writes a token file in llm.c's format with tokens below 256.
  std::string shard() const {
    run("data tokenize text.txt -o good.bin");
    return file_content(folder_ / "good.bin");
  }
};

TEST_F(BadInput, InConfigsEndsWithTwoAndNamesThePlace) {
  put_config("misspelt.txtpb", "optimizer {\n  learning_rat: 1\n}\n");
  put_config("type.txtpb", "optimizer {\n  learning_rate: fast\n}\n");
  put_config("twice.txtpb", "seed: 1\nseed: 2\n");
  put_config("brace.txtpb", "optimizer {\n");
  put_file(folder_ / "binary.txtpb", std::string("\x7f\0ELF\x80", 6));
  std::filesystem::create_directory(folder_ / "folder.txtpb");
  ASSERT_EQ(::mkfifo((folder_ / "fifo.txtpb").c_str(), 0600), 0);
  expect({
      {"misspelt.txtpb", kUsage, "misspelt.txtpb:5:3: ConfigError: "},
      {"misspelt.txtpb", kUsage, "Did you mean \"learning_rate\"?"},
      {"type.txtpb", kUsage, "type.txtpb:5:"},
      {"twice.txtpb", kUsage, "twice.txtpb:5:"},
      {"brace.txtpb", kUsage, "brace.txtpb:"},
      {"binary.txtpb", kUsage, "binary.txtpb"},
      {"absent.txtpb", kUsage, "absent.txtpb"},
      {"folder.txtpb", kUsage, "folder.txtpb: ConfigError: cannot be read: Is a directory"},
      {"fifo.txtpb", kUsage, "fifo.txtpb: ConfigError: cannot be read: it is not a regular file"},
      {"run.txtpb --set train.steps=-1", kUsage, "train.steps"},
      {"run.txtpb --set train.batch_size=99999999999", kUsage, "train.batch_size"},
      {"run.txtpb --set model.gpt2.layers=0", kUsage, "model.gpt2.layers"},
      {"run.txtpb --set model.gpt2.width=12345678901234567890", kUsage, "model.gpt2.width"},
      {"run.txtpb --set optimizer.learning_rate=nan", kUsage, "optimizer.learning_rate"},
      {"run.txtpb --set model.gpt2.heads=3", kUsage, "heads does not divide the width"},
      {"run.txtpb --set train.leaves=3", kUsage, "train.leaves"},
      {"run.txtpb --set checkpoint.keep_last=0", kUsage, "checkpoint.keep_last"},
      {"run.txtpb --set seed+=1", kUsage, "seed"},
      {"run.txtpb --time-limit soon", kUsage, "--time-limit"},
  });
}

TEST_F(BadInput, InTextsEndsWithThreeAndNamesTheFile) {
  put_file(folder_ / "empty.txt", "");
  put_file(folder_ / "short.txt", "abc");
  put_file(folder_ / "binary.txt", std::string("text\0more", 9) + std::string(400, 'x'));
  std::filesystem::create_directory(folder_ / "nothing");
  const std::string pieces =
      "--set data.text.tokenizer.sentencepiece.vocab_size=260 "
      "--set model.gpt2.vocab_size=300 --set data.text.path=";
  expect({
      {"run.txtpb --set data.text.path=absent.txt", kData, "absent.txt"},
      {"run.txtpb --set data.text.path=empty.txt", kData, "empty.txt: the text is empty"},
      {"run.txtpb --set data.text.path=short.txt", kData, "short.txt"},
      {"run.txtpb --set data.text.path=nothing", kData, "nothing"},
      {"run.txtpb " + pieces + "binary.txt", kData, "a zero byte at byte 4"},
      {"run.txtpb --set data.table.path=text.txt --set model.mlp.inputs=2 --set "
       "model.mlp.classes=2",
       kData, "text.txt:"},
  });
}

TEST_F(BadInput, UnreadableTextEndsWithThree) {
  std::filesystem::permissions(folder_ / "text.txt", std::filesystem::perms(0));
  if (std::ifstream(folder_ / "text.txt").good()) GTEST_SKIP() << "root may read every file";
  expect({{"run.txtpb --set data.text.path=text.txt", kData, "Permission denied"}});
}

TEST_F(BadInput, InShardsEndsWithThreeAndNamesTheFile) {
  const std::string good = shard();
  const auto flipped = [&](size_t byte) {
    std::string damaged = good;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 1);
    return damaged;
  };
  put_file(folder_ / "cut.bin", good.substr(0, good.size() - 1));
  put_file(folder_ / "header.bin", good.substr(0, 100));
  put_file(folder_ / "magic.bin", flipped(0));
  put_file(folder_ / "version.bin", flipped(4));
  put_file(folder_ / "count.bin", flipped(8));
  // Flips the high byte of a token.
  put_file(folder_ / "token.bin", flipped(1024 + 2 * 50 + 1));
  const auto train = [](const std::string& name) {
    return "run.txtpb --set train.batch_size=512 --set data.shards.train=" + name;
  };
  EXPECT_EQ(run("train --run-dir out --set data.shards.train=good.bin run.txtpb").status, 0);
  expect({
      {train("absent.bin"), kData, "absent.bin"},
      {train("cut.bin"), kData, "cut.bin"},
      {train("header.bin"), kData, "header.bin"},
      {train("magic.bin"), kData, "wrong magic"},
      {train("version.bin"), kData, "version.bin"},
      {train("count.bin"), kData, "count.bin: the header names"},
      {train("token.bin"), kData, "token 50 of the file is"},
  });
}

TEST_F(BadInput, InWeightsEndsWithFourAndListsThem) {
  ASSERT_EQ(run("train run.txtpb --run-dir done").status, 0);
  std::filesystem::create_directory(folder_ / "empty");
  put_file(folder_ / "cut.safetensors",
           file_content(folder_ / "done/model.safetensors").substr(0, 2000));
  const std::string weights = "run.txtpb --set model.weights=";
  expect({
      {weights + "absent", kCheckpoint, "absent"},
      {weights + "empty", kCheckpoint, "empty"},
      {weights + "cut.safetensors", kCheckpoint, "cut.safetensors"},
      {weights + "done --set model.gpt2.layers=2", kCheckpoint, "missing h.1.ln_1.weight"},
      {weights + "done --set model.gpt2.width=16", kCheckpoint, "wte.weight"},
  });
}

}  // namespace
}  // namespace lockstep::launcher
