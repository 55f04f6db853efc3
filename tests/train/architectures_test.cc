#include "train/architectures.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "configs/architectures.h"
#include "configs/load.h"
#include "configs/run.pb.h"

namespace lockstep::train {
namespace {

const std::map<std::string, std::string>& smallest_models() {
  static const std::map<std::string, std::string> kModels = {
      {"gpt2", "gpt2 { context_length: 8 layers: 1 heads: 2 width: 4 }"},
      {"llama", "llama { context_length: 8 layers: 1 heads: 2 width: 4 }"},
      {"resnet", "resnet { height: 8 width: 8 classes: 2 blocks: [1] base_width: 4 }"},
      {"mlp", "mlp { inputs: 4 classes: 2 hidden_widths: [3] }"}};
  return kModels;
}

TEST(ModelArchitectures, EveryArchitectureOfConfigsIsBuiltAsItsKind) {
  for (const config::Architecture& each : config::architectures()) {
    ASSERT_TRUE(smallest_models().contains(each.name)) << each.name << ": add a smallest model";
    const config::RunConfig run = config::load_text("model { " + smallest_models().at(each.name) +
                                                    " }\ndata { random {} }\n"
                                                    "train { steps: 1 batch_size: 1 }\n");
    if (each.is_language_model()) {
      const auto model = make_language_model(run.model());
      EXPECT_EQ(model->context_length(), each.context_length(run.model())) << each.name;
    } else {
      EXPECT_EQ(make_classifier(run.model())->classes(), 2) << each.name;
    }
  }
}

}  // namespace
}  // namespace lockstep::train
