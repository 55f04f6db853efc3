#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "autograd/grad_mode.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/tensor/generator.h"
#include "nn/models/resnet.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/kernels/tensor_values.h"
#include "tests/train/tiny_models.h"
#include "train/build.h"
#include "train/weights.h"

namespace lockstep::train {
namespace {

nn::ResnetOptions small() {
  return {.channels = 1, .height = 8, .width = 8, .classes = 3, .base_width = 4, .blocks = {1, 1}};
}

TEST(ClassifierWeights, RunningStatisticsAreSavedWithTheWeights) {
  const NoGradGuard no_grad;
  const TemporaryDirectory folder;
  const Tensor x = random_tensor({5, 1, 8, 8});
  manual_seed(1);
  nn::Resnet saved(small());
  saved.forward(x);
  saved.forward(x);
  saved.eval();
  save_weights(saved, folder / "model.safetensors");

  manual_seed(2);
  nn::Resnet loaded(small());
  load_weights(loaded, folder / "model.safetensors");
  loaded.eval();
  EXPECT_EQ(loaded.bn1.num_batches_tracked.item<int64_t>(), 2);
  expect_near(loaded.forward(x), saved.forward(x), 0, 0);
}

TEST(ClassifierWeights, ARunBeginsWithTheWeightsThatItsConfigNames) {
  const TemporaryDirectory folder;
  const auto built = [](int seed, const std::string& weights) {
    return build_classifier(config::load_text(fmt::format(
        R"(seed: {} model {{ mlp {{ inputs: 4 classes: 2 }} weights: "{}" }}
           data {{ random {{}} }} train {{ steps: 1 batch_size: 2 }})",
        seed, weights)));
  };
  const auto saved = built(1, "");
  const std::filesystem::path file = folder / "model.safetensors";
  save_weights(*saved, file);
  EXPECT_FALSE(same_parameters(*built(2, ""), *saved));
  EXPECT_TRUE(same_parameters(*built(2, file.string()), *saved));
}

}  // namespace
}  // namespace lockstep::train
