#include "configs/variables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "configs/field_list.h"
#include "configs/program_variables.h"
#include "configs/run.pb.h"
#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

/// Loads kSmallest with variables and overrides applied.
RunConfig with(const Variables& variables, const std::vector<std::string>& overrides = {},
               Origins* origins = nullptr) {
  Origins found;
  RunConfig config;
  merge_text(config, found, kSmallest, "a.txtpb");
  apply_variables(config, found, variables);
  for (const std::string& assignment : overrides) set_value(config, found, assignment);
  resolve(config, found);
  if (origins != nullptr) *origins = found;
  return config;
}

std::string refusal(const Variables& variables) {
  try {
    with(variables);
  } catch (const SourceError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Variables, SetFieldsByTheirPath) {
  Origins origins;
  const RunConfig config = with(
      {{"LOCKSTEP_TRAIN_STEPS", "5"}, {"LOCKSTEP_OPTIMIZER_ADAMW_BETA2", "0.5"}}, {}, &origins);
  EXPECT_EQ(config.train().steps(), 5);
  EXPECT_EQ(config.optimizer().adamw().beta2(), 0.5);
  EXPECT_EQ(origins.at("train.steps"), "LOCKSTEP_TRAIN_STEPS=5");
}

TEST(Variables, StandBetweenFilesAndFlags) {
  const RunConfig config =
      with({{"LOCKSTEP_TRAIN_STEPS", "5"}, {"LOCKSTEP_SEED", "9"}}, {"train.steps=7"});
  EXPECT_EQ(config.train().steps(), 7);
  EXPECT_EQ(config.seed(), 9U);
}

TEST(Variables, ChooseMembers) {
  EXPECT_TRUE(with({{"LOCKSTEP_OPTIMIZER_SGD", "{}"}}).optimizer().has_sgd());
}

TEST(Variables, ReplaceLists) {
  Variables variables = {{"LOCKSTEP_MODEL_MLP_INPUTS", "4"},
                         {"LOCKSTEP_MODEL_MLP_CLASSES", "2"},
                         {"LOCKSTEP_MODEL_MLP_HIDDEN_WIDTHS", "7,8"}};
  Origins origins;
  const RunConfig config = with(variables, {"model.mlp.hidden_widths+=9"}, &origins);
  EXPECT_EQ(config.model().mlp().hidden_widths_size(), 3);
  EXPECT_EQ(config.model().mlp().hidden_widths(0), 7);
  EXPECT_EQ(config.model().mlp().hidden_widths(2), 9);
  variables["LOCKSTEP_MODEL_MLP_HIDDEN_WIDTHS"] = "[]";
  EXPECT_EQ(with(variables).model().mlp().hidden_widths_size(), 0);
  variables["LOCKSTEP_MODEL_MLP_HIDDEN_WIDTHS"] = "7,no";
  EXPECT_EQ(refusal(variables),
            "LOCKSTEP_MODEL_MLP_HIDDEN_WIDTHS=7,no: model.mlp.hidden_widths[1] is no: expected an "
            "integer from 1 to 2^20.");
}

TEST(Variables, EmptyOnesCountAsNotThere) {
  EXPECT_EQ(with({{"LOCKSTEP_TRAIN_STEPS", ""}}).train().steps(), 3);
}

TEST(Variables, WrongNamesAndValuesAreRefusedWhereTheyStand) {
  EXPECT_EQ(
      refusal({{"LOCKSTEP_TRAIN_STEP", "5"}}),
      "LOCKSTEP_TRAIN_STEP=5: LOCKSTEP_TRAIN_STEP names no field of a config and no setting of "
      "the program. Did you mean LOCKSTEP_TRAIN_STEPS?");
  EXPECT_EQ(refusal({{"LOCKSTEP_WARN_COPY", "1"}}),
            "LOCKSTEP_WARN_COPY=1: LOCKSTEP_WARN_COPY names no field of a config and no setting of "
            "the program. Did you mean LOCKSTEP_WARN_COPIES?");
  EXPECT_EQ(refusal({{"LOCKSTEP_TRAIN_STEPS", "many"}}),
            "LOCKSTEP_TRAIN_STEPS=many: train.steps is many: expected an integer from 1 to "
            "10^12.");
  EXPECT_EQ(refusal({{"LOCKSTEP_TRAIN_STEPS", "-1"}}),
            "LOCKSTEP_TRAIN_STEPS=-1: train.steps is -1: expected an integer from 1 to "
            "10^12.");
}

TEST(Variables, ProgramVariablesAreLeftAlone) {
  Variables variables;
  for (const ProgramVariable& variable : program_variables()) variables[variable.name] = "";
  EXPECT_EQ(refusal(variables), "accepted");
}

TEST(Variables, ValuesOfProgramVariablesThatAreNotUnderstoodAreRefused) {
  for (const ProgramVariable& variable : program_variables()) {
    if (variable.problem == nullptr) continue;
    for (const char* value : {"true", "avx5", "-1", "1x", "1 "}) {
      const std::string message = refusal({{variable.name, value}});
      EXPECT_NE(message.find(fmt::format("{}={}", variable.name, value)), message.npos) << message;
      EXPECT_NE(message.find("expected"), message.npos) << message;
    }
  }
  EXPECT_EQ(refusal({{"LOCKSTEP_CPU_CAPABILITY", "avx5"}}),
            "LOCKSTEP_CPU_CAPABILITY=avx5: LOCKSTEP_CPU_CAPABILITY cannot be \"avx5\": expected "
            "avx2 or avx512.");
}

TEST(Variables, ValuesOfProgramVariablesThatAreUnderstoodAreAccepted) {
  EXPECT_EQ(refusal({{"LOCKSTEP_ALLOC_CONF", "expandable_segments:True"},
                     {"LOCKSTEP_CPU_CAPABILITY", "avx512"},
                     {"LOCKSTEP_EMULATED_ORDER", "descending"},
                     {"LOCKSTEP_MASTER_PORT", "65535"},
                     {"LOCKSTEP_RANK", "0"},
                     {"LOCKSTEP_SHM", "0"},
                     {"LOCKSTEP_START_LIMIT", "86400"},
                     {"LOCKSTEP_STREAM_SANITIZER", "stacks"},
                     {"LOCKSTEP_WARN_COPIES", "1"}}),
            "accepted");
}

TEST(Variables, EveryFieldHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const ProgramVariable& variable : program_variables()) names.insert(variable.name);
  for (const std::string& path : field_paths()) {
    EXPECT_TRUE(names.insert(variable_name(path)).second) << path;
  }
}

TEST(Variables, OfTheProcessAreThoseWithThePrefix) {
  ASSERT_EQ(setenv("LOCKSTEP_TRAIN_STEPS", "a=b", 1), 0);
  ASSERT_EQ(setenv("LOCKSTEPS", "x", 1), 0);
  const Variables found = process_variables();
  unsetenv("LOCKSTEP_TRAIN_STEPS");
  unsetenv("LOCKSTEPS");
  EXPECT_EQ(found.at("LOCKSTEP_TRAIN_STEPS"), "a=b");
  EXPECT_FALSE(found.contains("LOCKSTEPS"));
}

/// A variable that the program reads but does not list would be rejected as a misspelling.
TEST(Variables, EveryVariableThatTheSourcesReadIsListed) {
  namespace fs = std::filesystem;
  std::set<std::string> known;
  for (const ProgramVariable& variable : program_variables()) known.insert(variable.name);
  const std::regex read("\\w\\(\\s*\"(LOCKSTEP_[A-Z_0-9]+)\"");
  for (const char* folder : {"core", "kernels", "autograd", "dist", "nn", "train", "launcher"}) {
    const fs::path path = fs::path(LOCKSTEP_SOURCE_DIR) / folder;
    if (!fs::exists(path)) continue;
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(path)) {
      if (!file.is_regular_file()) continue;
      std::ifstream stream(file.path());
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      for (std::sregex_iterator match(text.begin(), text.end(), read), end; match != end; ++match) {
        EXPECT_TRUE(known.contains((*match)[1])) << file.path() << " reads " << (*match)[1];
      }
    }
  }
}

TEST(ProgramVariables, ThoseThatRanksMustHaveAlikeAreListedWithWhatIsMeant) {
  const std::string unset = values_alike_on_ranks({});
  EXPECT_NE(unset.find("LOCKSTEP_SHM: 1\n"), std::string::npos) << unset;
  EXPECT_NE(unset.find("LOCKSTEP_ALLOW_TF32: 0\n"), std::string::npos);
  EXPECT_EQ(values_alike_on_ranks({{"LOCKSTEP_SHM", "1"}, {"LOCKSTEP_RANK", "3"}}), unset);
  EXPECT_NE(values_alike_on_ranks({{"LOCKSTEP_SHM", "0"}}), unset);
}

TEST(ProgramVariables, NoSecretIsCompared) {
  const std::string secret = "a61f";
  EXPECT_EQ(values_alike_on_ranks({{"LOCKSTEP_JOB_SECRET", secret}}).find(secret),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::config
