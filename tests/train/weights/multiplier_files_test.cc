// Marks of muP's multipliers in config.json.

#include "train/weights/multiplier_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/train/tiny_models.h"
#include "train/weights/hugging_face_folder.h"

namespace lockstep::train {
namespace {

std::string put_description(const TemporaryDirectory& folder, const nn::LanguageModel& model) {
  put_file(folder / "config.json", hugging_face_config(model, nullptr));
  mark_multipliers(model, folder.path());
  return file_content(folder / "config.json");
}

TEST(MultiplierMarks, AreReadAsTheyWereWritten) {
  const TemporaryDirectory folder;
  nn::Gpt2Options options = tiny_gpt2();
  options.mup = {.width = 3, .head_width = 1.5, .input_multiplier = 0.1, .output_multiplier = 7};
  const nn::Gpt2 model(options);
  const std::string text = put_description(folder, model);
  EXPECT_TRUE(says(text, "\"model_type\": \"gpt2_mup\""));
  EXPECT_TRUE(multipliers_of(folder.path()).computes_as(options.mup));
  EXPECT_TRUE(multipliers_of(folder / "model.safetensors").computes_as(options.mup));
  const UnmarkedConfig found = unmarked(text);
  EXPECT_TRUE(found.mup.computes_as(options.mup));
  EXPECT_TRUE(says(found.text, "\"model_type\": \"gpt2\""));
  EXPECT_FALSE(says(found.text, "mup"));
}

TEST(MultiplierMarks, AModelWithoutMultipliersHasNone) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(multipliers_of(folder.path()).is_plain());
  const nn::Llama model(tiny_llama());
  const std::string text = put_description(folder, model);
  EXPECT_EQ(text, hugging_face_config(model, nullptr));
  EXPECT_TRUE(multipliers_of(folder.path()).is_plain());
}

TEST(MultiplierMarks, ThatCannotBeReadAreRefused) {
  const TemporaryDirectory folder;
  const auto problem = [&](const std::string& text, const std::string& part) {
    put_file(folder / "config.json", text);
    expect_error<CheckpointError>([&] { multipliers_of(folder.path()); },
                                  (folder / "config.json").string(), part);
  };
  problem(R"({"model_type": "gpt2_mup", "mup": 3})", "expected an object, got 3");
  problem(R"({"model_type": "gpt2_mup", "mup": {"width": 2}})",
          "expected a number \"head_width\" above 0");
  const std::string factors = R"("head_width": 1, "input_multiplier": 1, "output_multiplier": 1})";
  problem(R"({"model_type": "gpt2_mup", "mup": {"width": 0, )" + factors + "}",
          "expected a number \"width\" above 0");
  problem(R"({"model_type": "gpt2", "mup": {"width": 2, )" + factors + "}",
          "whose model_type ends with _mup, got \"gpt2\"");
  problem(R"({"model_type": 1, "mup": {"width": 2, )" + factors + "}", "got \"\"");
}

TEST(MultiplierMarks, ADescriptionThatIsNotJsonHasNone) {
  const TemporaryDirectory folder;
  put_file(folder / "config.json", "{");
  EXPECT_TRUE(multipliers_of(folder.path()).is_plain());
}

}  // namespace
}  // namespace lockstep::train
