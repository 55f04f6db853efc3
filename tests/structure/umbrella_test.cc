#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using ::testing::ElementsAre;

/// Headers of the operators' blocks that users have no need of.
bool is_internal(const std::string& path) {
  static const std::set<std::string> kInternal = {"core/ops/pointwise/activation_curvature.h",
                                                  "core/ops/pointwise/choice.h",
                                                  "core/ops/norm/norm_projection.h",
                                                  "core/ops/pointwise/number_tensor.h",
                                                  "core/ops/pointwise/promotion.h",
                                                  "core/ops/reduce/reduced_dims.h",
                                                  "core/ops/norm/statistics_dtype.h",
                                                  "core/ops/factory/write_results.h"};
  return path.ends_with("_rules.h") || kInternal.contains(path);
}

/// Headers of operators, modules and models that `umbrella` leaves out.
std::vector<std::string> missing_from(const SourceFile& umbrella,
                                      const std::vector<SourceFile>& files) {
  std::set<std::string> included;
  for (const Include& include : umbrella.includes) included.insert(include.path);
  std::vector<std::string> missing;
  for (const SourceFile& file : files) {
    const bool is_public = file.path.starts_with("core/ops/") || file.path.starts_with("nn/");
    if (is_public && is_header(file.path) && !is_internal(file.path) &&
        !included.contains(file.path)) {
      missing.push_back(file.path);
    }
  }
  return missing;
}

SourceFile read_umbrella() {
  std::ifstream in(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "lockstep/lockstep.h");
  return parse_source("lockstep/lockstep.h", {std::istreambuf_iterator<char>(in), {}});
}

TEST(Umbrella, EveryHeaderOfOperatorsAndModulesIsInIt) {
  const auto missing = missing_from(read_umbrella(), read_source_tree(LOCKSTEP_SOURCE_DIR));
  EXPECT_TRUE(missing.empty()) << "lockstep/lockstep.h does not include:\n" << join(missing);
}

TEST(Umbrella, AHeaderThatIsLeftOutIsNamed) {
  const auto missing =
      missing_from(parse_source("lockstep/lockstep.h", "#include \"nn/module.h\"\n"),
                   {parse_source("core/ops/fft.h", ""), parse_source("core/ops/fft.cc", ""),
                    parse_source("core/ops/fft_rules.h", ""), parse_source("nn/module.h", "")});
  EXPECT_THAT(missing, ElementsAre("core/ops/fft.h"));
}

}  // namespace
}  // namespace lockstep::structure
