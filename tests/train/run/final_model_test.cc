#include "train/run/final_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/weights/file_digests.h"
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

TEST_F(CompareWeights, OfARunAreVerifiedWithAllFilesThatItsManifestNames) {
  const RunDirectory directory = run("x", weights_);
  EXPECT_FALSE(verify_model(directory).has_manifest);
  put_file(directory.path() / "a.json", "{}");
  put_file(directory.path() / "z.json", "[]");
  FileDigests files;
  for (const char* name : {"a.json", "model.safetensors", "z.json"}) {
    files[name] = digest_of_file(directory.path() / name);
  }
  write_model_manifest(directory.path(), 7, files);
  const ModelVerification whole = verify_model(directory);
  EXPECT_TRUE(whole.has_manifest);
  EXPECT_EQ(whole.files, 3U);
  EXPECT_EQ(whole.tensors, 2U);
  for (const char* name : {"a.json", "z.json"}) {
    const std::string before = file_content(directory.path() / name);
    put_file(directory.path() / name, "()");
    expect_error<CheckpointError>([&] { (void)verify_model(directory); }, name);
    put_file(directory.path() / name, before);
  }
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

/// A run with a checkpoint every two steps, without the model of its end.
RunDirectory unfinished_run(const TemporaryDirectory& folder, int steps, int seed) {
  const std::string more = fmt::format(
      "seed: {} schedule {{ kind: CONSTANT }} train {{ steps: {} }} checkpoint {{ every_steps: 2 "
      "keep_last: 9 }}",
      seed, steps);
  rethrow_first(run_on_ranks(tiny_run(folder, more), folder, 1));
  const RunDirectory directory =
      RunDirectory::create_at(folder / "run", RunDirectory::Existing::kContinue);
  std::filesystem::remove(directory.weights());
  return directory;
}

TEST(CompareCheckpoints, OfUnfinishedRunsAreThoseOfTheNewestCommonStep) {
  const TemporaryDirectory first, second;
  const RunDirectory a = unfinished_run(first, 6, 1), b = unfinished_run(second, 4, 1);
  WeightsComparison found = compare_weights(a, b);
  EXPECT_TRUE(found.identical) << found.text;
  EXPECT_THAT(found.text, HasSubstr((a.checkpoints() / "step-00000004").string()));
  EXPECT_THAT(found.text, HasSubstr((b.checkpoints() / "step-00000004").string()));
  // One that was not written to its end is none.
  std::filesystem::remove(b.checkpoints() / "step-00000004" / "checkpoint.json");
  found = compare_weights(a, b);
  EXPECT_TRUE(found.identical) << found.text;
  EXPECT_THAT(found.text, HasSubstr("step-00000002"));
  std::filesystem::remove(a.checkpoints() / "step-00000002" / "checkpoint.json");
  EXPECT_EQ(compare_weights(a, b).text, "") << "no step of both is left";
}

TEST(CompareCheckpoints, TellWhichTensorDiffers) {
  const TemporaryDirectory first, second;
  const WeightsComparison found =
      compare_weights(unfinished_run(first, 2, 1), unfinished_run(second, 2, 2));
  EXPECT_FALSE(found.identical);
  EXPECT_THAT(found.text, HasSubstr("differs"));
}

}  // namespace
}  // namespace lockstep::train
