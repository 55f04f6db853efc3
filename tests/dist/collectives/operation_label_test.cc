#include "dist/collectives/operation_label.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace lockstep::dist {
namespace {

std::string label(size_t bytes = 40) {
  std::string text(bytes, 'x');
  OperationLabel::write(text.data(), bytes);
  return text.c_str();
}

TEST(OperationLabel, SaysTheBucketTheFragmentOrTheUnit) {
  EXPECT_EQ(label(), "");
  {
    const OperationLabel bucket = OperationLabel::bucket(12);
    EXPECT_EQ(label(), "bucket 12");
  }
  {
    const OperationLabel unit = OperationLabel::unit("h.0");
    EXPECT_EQ(label(), "unit h.0");
  }
  {
    const OperationLabel fragment = OperationLabel::fragment(2);
    EXPECT_EQ(label(), "fragment 2");
  }
  const OperationLabel root = OperationLabel::unit("");
  EXPECT_EQ(label(), "root unit");
}

TEST(OperationLabel, TheInnermostCountsAndTheOuterOneComesBack) {
  const OperationLabel unit = OperationLabel::unit("h.0");
  {
    const OperationLabel bucket = OperationLabel::bucket(1);
    EXPECT_EQ(label(), "bucket 1");
  }
  EXPECT_EQ(label(), "unit h.0");
}

TEST(OperationLabel, IsOfItsThread) {
  const OperationLabel bucket = OperationLabel::bucket(1);
  std::string other = "unset";
  std::thread([&] { other = label(); }).join();
  EXPECT_EQ(other, "");
}

TEST(OperationLabel, OfALongPathTheEndIsWritten) {
  const OperationLabel unit = OperationLabel::unit("model.layers.17.mlp");
  EXPECT_EQ(label(5 + 11 + 1), "unit yers.17.mlp");
  EXPECT_EQ(label(5 + 19 + 1), "unit model.layers.17.mlp");
  EXPECT_EQ(label(3), "un");
  EXPECT_EQ(label(1), "");
}

TEST(OperationLabel, APathIsCutBetweenCharacters) {
  const OperationLabel unit = OperationLabel::unit("a\u00e9b");
  EXPECT_EQ(label(5 + 2 + 1), "unit b");
  EXPECT_EQ(label(5 + 3 + 1), "unit \u00e9b");
}

}  // namespace
}  // namespace lockstep::dist
