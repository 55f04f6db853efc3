// What `lockstep --version` and `lockstep --version --json` say.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "core/base/files/zstd.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

class Version : public Program {
 protected:
  Json parts() const { return Json::parse(run("--version --json").output); }
};

TEST_F(Version, IsOneLineWithoutJson) { EXPECT_EQ(run("--version").output, LOCKSTEP_VERSION "\n"); }

TEST_F(Version, JsonNamesTheBuild) {
  const Result result = run("--version --json");
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json.at("version"), LOCKSTEP_VERSION);
  EXPECT_THAT(json.at("build").get<std::string>(), MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(json.at("compiler").get<std::string>(), MatchesRegex("[A-Za-z]+ [0-9.]+"));
  EXPECT_EQ(json.at("cxx_standard"), 20);
  EXPECT_TRUE(json.at("build_type").is_string());
  EXPECT_TRUE(json.at("instruction_sets").at("baseline").is_string());
  EXPECT_THAT(json.at("parts").at("protobuf").get<std::string>(), MatchesRegex("[0-9.]+"));
}

TEST_F(Version, TheCommitIsThatOfTheSourcesIfTheyAreInARepository) {
  const Json json = parts();
  // Nothing may have been committed since the program was built, so that only the form is compared.
  if (shell(fmt::format("git -C '{}' rev-parse HEAD", LOCKSTEP_SOURCE_DIR)).status != 0) {
    EXPECT_TRUE(json.at("commit").is_null());
    EXPECT_TRUE(json.at("modified").is_null());
    return;
  }
  const std::string commit = json.at("commit").get<std::string>();
  EXPECT_THAT(commit, MatchesRegex("[0-9a-f]{40}"));
  const Result type = shell(fmt::format("git -C '{}' cat-file -t {}", LOCKSTEP_SOURCE_DIR, commit));
  EXPECT_EQ(type.output, "commit\n") << type.errors;
  EXPECT_TRUE(json.at("modified").is_boolean());
}

TEST_F(Version, PartsAgreeWithDoctor) {
  const Json built = parts().at("parts");
  const Json checks = Json::parse(run("doctor --json").output).at("checks");
  const auto found = [&](const std::string& subject) {
    for (const Json& check : checks) {
      if (check.at("subject") == subject) return check.at("found").get<std::string>();
    }
    return std::string("no such check");
  };
  EXPECT_EQ(built.at("mpi").is_null(), found("MPI") == "not built in");
  EXPECT_EQ(built.at("cuda").is_null(), found("CUDA") == "not built in");
  const std::string loaded = " " + found("libraries");
  EXPECT_EQ(!built.at("onednn").is_null(), says(loaded, " dnnl ")) << loaded;
  EXPECT_EQ(!built.at("lapack").is_null(), says(loaded, " lapack ")) << loaded;
  EXPECT_EQ(!built.at("zstd").is_null(), has_zstd());
}

TEST_F(Version, VariantsAreTheInstructionSetsOfKernels) {
  const std::vector<std::string> variants = parts().at("instruction_sets").at("variants");
  if (variants.empty()) GTEST_SKIP() << "kernels have no variants on this processor";
  std::set<std::string> compiled;
  const std::regex features(R"re(#define LS_\w+_FEATURES "([^"]*)")re");
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(LOCKSTEP_SOURCE_DIR) / "kernels/cpu")) {
    if (!entry.is_regular_file()) continue;
    const std::string text = file_content(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), features), end; at != end; ++at) {
      compiled.insert((*at)[1]);
    }
  }
  EXPECT_EQ(std::set<std::string>(variants.begin(), variants.end()), compiled);
}

TEST_F(Version, JsonAloneIsAUsageError) {
  const Result result = run("--json");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, IsEmpty());
  EXPECT_THAT(result.errors, HasSubstr("--version"));
}

}  // namespace
}  // namespace lockstep::launcher
