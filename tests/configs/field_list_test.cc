#include "configs/field_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/load.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

TEST(FieldPaths, AreScalarsAndMembersOfChoices) {
  const std::vector<std::string> paths = field_paths();
  EXPECT_THAT(paths, Contains("train.steps"));
  EXPECT_THAT(paths, Contains("optimizer.adamw.beta1"));
  EXPECT_THAT(paths, Contains("optimizer.sgd"));
  EXPECT_THAT(paths, Contains("data.random"));
  EXPECT_THAT(paths, Not(Contains("train")));
  EXPECT_EQ(paths.front(), "name");
}

TEST(Completions, StartWithThePrefix) {
  EXPECT_THAT(completions("schedule.w"), ElementsAre("schedule.warmup_steps="));
  EXPECT_THAT(completions("optimizer.adamw.b"),
              ElementsAre("optimizer.adamw.beta1=", "optimizer.adamw.beta2="));
  EXPECT_THAT(completions(""), IsSupersetOf(completions("train.")));
  EXPECT_THAT(completions("no.such"), IsEmpty());
}

TEST(Completions, ListValuesWhereTheSchemaKnowsThem) {
  EXPECT_THAT(completions("schedule.kind="),
              ElementsAre("schedule.kind=COSINE", "schedule.kind=CONSTANT", "schedule.kind=LINEAR",
                          "schedule.kind=WSD", "schedule.kind=INVERSE_SQRT"));
  EXPECT_THAT(completions("schedule.kind=COS"), ElementsAre("schedule.kind=COSINE"));
  EXPECT_THAT(completions("optimizer.sgd.nesterov="),
              ElementsAre("optimizer.sgd.nesterov=true", "optimizer.sgd.nesterov=false"));
  EXPECT_THAT(completions("data.random="), ElementsAre("data.random={}"));
  EXPECT_THAT(completions("train.steps="), IsEmpty());
}

TEST(Completions, OfListsReplaceOrAppend) {
  EXPECT_THAT(field_paths(), Contains("model.resnet.blocks"));
  EXPECT_THAT(completions("model.resnet.bl"),
              ElementsAre("model.resnet.blocks=", "model.resnet.blocks+="));
  EXPECT_THAT(completions("model.resnet.blocks+"), ElementsAre("model.resnet.blocks+="));
  EXPECT_THAT(completions("model.resnet.blocks+="), IsEmpty());
  EXPECT_THAT(completions("seed+"), IsEmpty());
}

TEST(Completions, CoverEveryPath) {
  const std::vector<std::string> all = completions("");
  for (const std::string& path : field_paths()) EXPECT_THAT(all, Contains(path + "="));
}

TEST(Completions, OfEveryPathNameAFieldThatCanBeSet) {
  for (const std::string& path : field_paths()) {
    for (const std::string& assignment : completions(path + "=")) {
      RunConfig config;
      Origins origins;
      EXPECT_NO_THROW(set_value(config, origins, assignment)) << assignment;
    }
  }
}

}  // namespace
}  // namespace lockstep::config
