// Compares training with PyTorch's recorded runs, on one rank and on several.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/parity/parity_run.h"

namespace lockstep {
namespace {

const std::filesystem::path kCases = LOCKSTEP_SOURCE_DIR "/../shared/parity";

class Parity : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kCases)) GTEST_SKIP() << "no " << kCases;
  }

  /// Copies `name` to `folder` and applies `change` to its expected.json.
  template <class Change>
  static void put_changed(const train::TemporaryDirectory& folder, const char* name,
                          Change change) {
    for (const auto& file : std::filesystem::directory_iterator(kCases / name)) {
      std::filesystem::copy(file, folder.path());
    }
    auto expected = nlohmann::json::parse(train::file_content(folder / "expected.json"));
    change(expected);
    std::filesystem::remove(folder / "expected.json");
    train::put_file(folder / "expected.json", expected.dump());
  }
};

void expect_agrees(const ParityRun& run) {
  EXPECT_LE(run.loss.value, 1e-5) << run.loss.where;
  EXPECT_LE(run.grad_norm.value, 1e-4) << run.grad_norm.where;
  EXPECT_LE(run.first_gradient.value, 1) << run.first_gradient.where;
  EXPECT_LE(run.final_weight.value, 1e-3) << run.final_weight.where;
  EXPECT_TRUE(run.good());
}

class ParityOverRanks : public Parity, public testing::WithParamInterface<int> {};

TEST_P(ParityOverRanks, EachModelAgreesWithPyTorch) {
  for (const char* name : {"gpt2", "llama"}) {
    SCOPED_TRACE(name);
    expect_agrees(train_beside(kCases / name, GetParam()));
  }
}

// Three ranks take unequal shares of eight and of four sequences.
INSTANTIATE_TEST_SUITE_P(Ranks, ParityOverRanks, testing::Values(1, 2, 3, 4));

TEST_F(Parity, ALossThatDiffersInOneStepIsFoundThere) {
  const train::TemporaryDirectory folder;
  put_changed(folder, "llama", [](nlohmann::json& expected) {
    expected["loss_float64"][17] = expected["loss_float64"][17].get<double>() + 2e-5;
  });
  const ParityRun run = train_beside(folder.path(), 2);
  EXPECT_FALSE(run.good());
  EXPECT_EQ(run.loss.where, "step 17 of rank 0");
  EXPECT_LE(run.grad_norm.value, 1e-4);
}

TEST_F(Parity, AnotherLearningRateShows) {
  const train::TemporaryDirectory folder;
  put_changed(folder, "llama", [](nlohmann::json& expected) {
    expected["hyperparameters"]["lr"] = 1.001 * expected["hyperparameters"]["lr"].get<double>();
  });
  const ParityRun run = train_beside(folder.path(), 4);
  EXPECT_FALSE(run.good());
  EXPECT_LE(run.first_gradient.value, 1) << "the first step knows of no rate yet";
}

TEST_F(Parity, RanksThatCannotShareTheBatchAreRefused) {
  expect_error<ConfigError>([] { train_beside(kCases / "llama", 5); }, "5 ranks cannot share", "4");
  expect_error<ConfigError>([] { train_beside(kCases / "gpt2", 16); }, "16 ranks cannot share",
                            "8");
}

}  // namespace
}  // namespace lockstep
