#include "train/weights/name_index.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::train {
namespace {

TEST(NameIndex, FindsThePlaceOfEachNameThatWasAdded) {
  std::vector<std::string> names;
  const auto name_at = [&](size_t i) -> std::string_view { return names[i]; };
  NameIndex index;
  EXPECT_FALSE(index.find("", name_at));
  for (size_t i = 0; i < 5000; ++i) {
    const std::string name = i == 0 ? "" : "layer." + std::to_string(i * 7919) + ".weight";
    ASSERT_FALSE(index.find(name, name_at)) << name;
    names.push_back(name);
    index.add(name);
  }
  for (size_t i = 0; i < names.size(); ++i) ASSERT_EQ(index.find(names[i], name_at), i);
  EXPECT_FALSE(index.find("layer.1.weight", name_at));
}

}  // namespace
}  // namespace lockstep::train
