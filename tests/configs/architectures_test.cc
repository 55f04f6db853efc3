#include "configs/architectures.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

using ::testing::UnorderedElementsAreArray;

TEST(Architectures, EveryMemberOfTheSchemaHasOneRow) {
  std::vector<std::string> members;
  const auto& oneof = *ModelConfig::descriptor()->FindOneofByName("architecture");
  for (int i = 0; i < oneof.field_count(); ++i) {
    members.push_back(std::string(oneof.field(i)->name()));
  }
  std::vector<std::string> rows;
  for (const Architecture& each : architectures()) rows.push_back(each.name);
  EXPECT_THAT(rows, UnorderedElementsAreArray(members));
}

TEST(Architectures, ALanguageModelTellsItsContextAndItsVocabulary) {
  for (const Architecture& each : architectures()) {
    EXPECT_EQ(each.context_length != nullptr, each.vocabulary != nullptr) << each.name;
  }
}

TEST(Architectures, TheChosenMemberDecidesWhatIsRead) {
  ModelConfig model;
  model.mutable_llama()->set_context_length(24);
  model.mutable_llama()->set_vocab_size(300);
  const Architecture& llama = architecture_of(model);
  EXPECT_EQ(llama.path(), "model.llama");
  EXPECT_EQ(llama.context_length(model), 24);
  EXPECT_EQ(llama.vocabulary(model), 300);
  model.mutable_resnet();
  EXPECT_FALSE(architecture_of(model).is_language_model());
}

}  // namespace
}  // namespace lockstep::config
