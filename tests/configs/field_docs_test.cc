#include "configs/field_docs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "configs/field_list.h"
#include "core/base/error.h"

namespace lockstep::config {
namespace {

FieldDoc doc_of(const std::string& path) { return find_field_docs(path, {}).front(); }

TEST(FieldDocs, EveryFieldThatCanBeSetHasAComment) {
  const std::vector<FieldDoc> docs = field_docs();
  for (const std::string& path : field_paths()) {
    const auto found = std::ranges::find(docs, path, &FieldDoc::path);
    ASSERT_NE(found, docs.end()) << path;
    EXPECT_FALSE(found->comment.empty()) << path;
  }
}

TEST(FieldDocs, NumbersHaveRangeDefaultAndUnit) {
  const FieldDoc bucket = doc_of("parallel.bucket_mib");
  EXPECT_EQ(bucket.type, "number");
  EXPECT_EQ(bucket.unit, "MiB");
  EXPECT_EQ(bucket.range, "from 0 to 1000000");
  EXPECT_EQ(bucket.fallback, "0");
  EXPECT_EQ(doc_of("train.steps").fallback, "required");
  EXPECT_EQ(doc_of("train.leaves").fallback, "depends on other fields");
  EXPECT_EQ(doc_of("train.leaves").range, "a power of two from 1 to 4096");
  EXPECT_EQ(doc_of("model.resnet.blocks").type, "list of integer");
}

TEST(FieldDocs, NamesToChooseFromAreListed) {
  EXPECT_EQ(doc_of("schedule.kind").range, "one of COSINE, CONSTANT, LINEAR, WSD, INVERSE_SQRT");
  EXPECT_EQ(doc_of("optimizer.sgd").range, "one of adamw, sgd, muon, lion, adafactor");
  EXPECT_EQ(doc_of("optimizer.sgd").fallback, "not chosen");
}

TEST(FieldDocs, AreFoundByWordsInPathOrComment) {
  EXPECT_EQ(find_field_docs("", {"warmup_steps"}).front().path, "schedule.warmup_steps");
  EXPECT_FALSE(find_field_docs("", {"LEARNING RATE"}).empty());
  EXPECT_TRUE(find_field_docs("train", {"newton-schulz"}).empty());
  EXPECT_THROW(find_field_docs("trian", {}), ConfigError);
}

}  // namespace
}  // namespace lockstep::config
