#include "train/run/final_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/core/base/temporary_directory.h"
#include "train/weights/safetensors.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

class CompareWeights : public testing::Test {
 protected:
  /// The bytes of int8 tensors by name.
  using Weights = std::map<std::string, std::string>;

  /// A finished run with these weights.
  RunDirectory run(const std::string& name, const Weights& weights) const {
    const RunDirectory directory =
        RunDirectory::create_at(folder_ / name, RunDirectory::Existing::kRefuse);
    std::vector<TensorRecord> records;
    for (const auto& [tensor, bytes] : weights) {
      records.push_back({tensor, DType::kI8, {std::ssize(bytes)}, std::as_bytes(std::span(bytes))});
    }
    write_safetensors(directory.weights(), records, {});
    return directory;
  }

  TemporaryDirectory folder_;
  const Weights weights_ = {{"a", "ab"}, {"b", "cde"}};
};

TEST_F(CompareWeights, OfEqualRunsAreIdentical) {
  const WeightsComparison found = compare_weights(run("x", weights_), run("y", weights_));
  EXPECT_TRUE(found.identical) << found.text;
  EXPECT_THAT(found.text, HasSubstr("identical, 2 tensors of "));
}

TEST_F(CompareWeights, NamesTheTensorThatDiffers) {
  Weights other = weights_;
  other["b"] = "cdf";
  const WeightsComparison found = compare_weights(run("x", weights_), run("y", other));
  EXPECT_FALSE(found.identical);
  EXPECT_THAT(found.text, HasSubstr("tensor \"b\" in model.safetensors differs"));
}

TEST_F(CompareWeights, NamesTheTensorThatOnlyOneHas) {
  const Weights fewer = {{"a", "ab"}};
  const RunDirectory x = run("x", weights_), y = run("y", fewer);
  EXPECT_THAT(compare_weights(x, y).text, HasSubstr("has no tensor \"b\""));
  const WeightsComparison found = compare_weights(y, x);
  EXPECT_FALSE(found.identical);
  EXPECT_THAT(found.text, HasSubstr("differ in name or shape"));
}

TEST_F(CompareWeights, SaysWhichRunHasAny) {
  const RunDirectory x = run("x", weights_);
  const RunDirectory empty =
      RunDirectory::create_at(folder_ / "empty", RunDirectory::Existing::kRefuse);
  const WeightsComparison found = compare_weights(x, empty);
  EXPECT_FALSE(found.identical);
  EXPECT_THAT(found.text, HasSubstr("only " + x.path().string() + " has any"));
  EXPECT_TRUE(compare_weights(empty, empty).identical);
}

}  // namespace
}  // namespace lockstep::train
