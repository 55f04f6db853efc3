// A run with model.mup: eval, sample and convert take its checkpoints and its end alike.

#include <nlohmann/json.hpp>

#include "tests/launcher/text_run.h"

namespace lockstep::launcher {
namespace {

class MupRun : public TextRun {
 protected:
  MupRun() : TextRun(6) {}
  Result train_wider() const {
    return train("run",
                 "--set model.mup.base_width=2 --set model.mup.input_multiplier=3 "
                 "--set optimizer.learning_rate=0.05");
  }
  double loss_of(const std::string& arguments) const {
    const Result found = run("eval --json " + arguments);
    EXPECT_EQ(found.status, 0) << found.errors;
    return nlohmann::json::parse(found.output)["loss"].get<double>();
  }
  std::string text_of(const std::string& folder) const {
    const Result found =
        run("sample " + folder + " --num-samples 1 --max-new-tokens 20 --temperature 0");
    EXPECT_EQ(found.status, 0) << found.errors;
    return found.output;
  }
  const std::string checkpoint_ = "run/checkpoints/step-00000006";
};

TEST_F(MupRun, TheEndAndItsCheckpointPredictAlike) {
  ASSERT_EQ(train_wider().status, 0);
  const double end = loss_of("run"), checkpoint = loss_of("run --weights " + checkpoint_);
  EXPECT_NEAR(end, checkpoint, 1e-5);
  EXPECT_EQ(text_of("run"), text_of(checkpoint_));
}

TEST_F(MupRun, ConvertedModelsComputeTheSame) {
  ASSERT_EQ(train_wider().status, 0);
  for (const std::string& from : {std::string("run"), checkpoint_}) {
    const Result converted = run("checkpoint convert " + from + " hf --to hf");
    EXPECT_EQ(converted.status, 0) << converted.errors;
    EXPECT_NEAR(loss_of("run --weights hf"), loss_of("run"), 1e-5);
    EXPECT_FALSE(says(file_content(folder_ / "hf/config.json"), "mup"));
    for (const char* to : {"gguf", "llmc"}) {
      EXPECT_EQ(run(fmt::format("checkpoint convert {} a.{} --to {}", from, to, to)).status, 0);
      std::filesystem::remove(folder_ / fmt::format("a.{}", to));
    }
    std::filesystem::remove_all(folder_ / "hf");
  }
}

TEST_F(MupRun, AnotherBaseModelDoesNotContinueIt) {
  ASSERT_EQ(train_wider().status, 0);
  const Result other = train("run", "--set model.mup.base_width=4 --set train.steps=8");
  EXPECT_EQ(other.status, 4);
  EXPECT_TRUE(says(other.errors, "its model was scaled otherwise")) << other.errors;
}

}  // namespace
}  // namespace lockstep::launcher
