// Lists of messages, as the sources of a mixture are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/annotated_text.h"
#include "configs/field_list.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::config {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using train::message_of;
using train::says;

constexpr const char* kModelOfLists =
    "model { gpt2 { context_length: 8 layers: 1 heads: 1 width: 8 } } train { steps: 1 batch_size: "
    "1 }\n";
constexpr const char* kTwoSources =
    "data { mixture {\n"
    "  source { text { path: 'a' } }\n"
    "  source {\n"
    "    shards { train: 'b' }\n"
    "    weight: 2\n"
    "  }\n"
    "} }\n";

struct WithSources {
  RunConfig config;
  Origins origins;
};

WithSources with_sources(const std::vector<std::string>& texts,
                         const std::vector<std::string>& sets = {}) {
  WithSources result;
  merge_text(result.config, result.origins, kModelOfLists, "model");
  for (size_t i = 0; i < texts.size(); ++i) {
    merge_text(result.config, result.origins, texts[i], "file" + std::to_string(i));
  }
  for (const std::string& set : sets) set_value(result.config, result.origins, set);
  resolve(result.config, result.origins);
  return result;
}

TEST(MessageList, ElementsHaveDefaultsAndOriginsOfTheirOwn) {
  const WithSources two = with_sources({kTwoSources});
  const MixtureData& mixture = two.config.data().mixture();
  ASSERT_EQ(mixture.source_size(), 2);
  EXPECT_EQ(mixture.source(0).weight(), 1);
  EXPECT_EQ(mixture.source(0).text().json_lines().field(), "text");
  EXPECT_EQ(mixture.source(1).weight(), 2);
  EXPECT_EQ(two.origins.at("data.mixture.source[0].weight"), "default");
  EXPECT_EQ(two.origins.at("data.mixture.source[1].weight"), "file0:5:5");
  EXPECT_EQ(two.origins.at("data.mixture.source[1]"), "file0:3:3");
}

TEST(MessageList, ALaterFileReplacesTheWholeList) {
  const WithSources one = with_sources(
      {kTwoSources, "data { mixture { cache_dir: 'c' source { text { path: 'z' } } } }"});
  const MixtureData& mixture = one.config.data().mixture();
  ASSERT_EQ(mixture.source_size(), 1);
  EXPECT_EQ(mixture.source(0).text().path(), "z");
  EXPECT_FALSE(one.origins.contains("data.mixture.source[1].weight"));
  const WithSources kept = with_sources({kTwoSources, "data { mixture { cache_dir: 'c' } }"});
  EXPECT_EQ(kept.config.data().mixture().source_size(), 2);
}

TEST(MessageList, TheTextOfAConfigReadsBack) {
  const WithSources two = with_sources({kTwoSources});
  EXPECT_EQ(to_text(load_text(to_text(two.config))), to_text(two.config));
  EXPECT_THAT(annotated_text(two.config, two.origins), HasSubstr("weight: 2"));
  const WithSources other = with_sources({kTwoSources}, {"data.mixture.source[1].weight=3"});
  const std::vector<Difference> found = differences(two.config, other.config);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, "data.mixture.source[1].weight");
}

TEST(MessageList, FieldsOfAnElementThatIsThereCanBeSet) {
  const WithSources two = with_sources({kTwoSources}, {"data.mixture.source[0].text.path=other"});
  EXPECT_EQ(two.config.data().mixture().source(0).text().path(), "other");
  for (const char* set :
       {"data.mixture.source[2].weight=1", "data.mixture.source.weight=1", "data.mixture.source={}",
        "data.mixture.source[0]={}", "data.mixture.source[-1].weight=1"}) {
    EXPECT_FALSE(message_of<SourceError>([&] { with_sources({kTwoSources}, {set}); }).empty())
        << set;
  }
  EXPECT_TRUE(says(
      message_of<SourceError>(
          [&] { with_sources({kTwoSources}, {"data.mixture.source[2].weight=1"}); }),
      "data.mixture.source is a list of 2, each with fields: expected a field of one that a file"));
  EXPECT_THAT(field_paths(), Not(Contains(HasSubstr("mixture.source"))));
}

TEST(MessageList, ErrorsNameTheElementAndItsPlace) {
  EXPECT_TRUE(says(message_of<SourceError>([&] {
                     with_sources(
                         {"data { mixture {\n source { text { path: 'a' } }\n"
                          " source { text { path: 'a' } wight: 2 } } }"});
                   }),
                   "file0:3:30: data.mixture.source[1] has no field \"wight\""));
  EXPECT_TRUE(says(message_of<SourceError>(
                       [&] { with_sources({"data { mixture {\n source { text {} }\n } }"}); }),
                   "data.mixture.source[0].text.path is required"));
}

}  // namespace
}  // namespace lockstep::config
