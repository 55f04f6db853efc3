// `lockstep cache` as a user calls it.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "compile/native/library_cache.h"
#include "core/base/files/atomic_file.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Json = nlohmann::json;

class CacheVerb : public Program {
 protected:
  void SetUp() override {
    std::filesystem::create_directory((folder_ / "cache"));
    write_text((folder_ / "library"), "bytes");
    (void)compiler::LibraryCache((folder_ / "cache"))
        .add({1, 2}, (folder_ / "library"), "loop of mul, add");
  }

  Result cache(const std::string& arguments) const {
    return run("cache " + arguments, "LOCKSTEP_CACHE_DIR=" + (folder_ / "cache").string());
  }
};

TEST_F(CacheVerb, ListsWhatWasCompiled) {
  const Result result = cache("ls");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, MatchesRegex("[0-9a-f]+ +1 KiB +0 days  loop of mul, add\n.*: 1 "
                                          "libraries, 0.0 MiB\n"));
  const Json object = Json::parse(cache("ls --json").output);
  EXPECT_EQ(object["folder"], (folder_ / "cache").string());
  EXPECT_EQ(object["libraries"][0]["what"], "loop of mul, add");
  EXPECT_EQ(object["libraries"][0]["bytes"], object["bytes"]);
}

TEST_F(CacheVerb, PruneRemovesWhatIsOld) {
  EXPECT_THAT(cache("prune").output, HasSubstr("0 removed"));
  EXPECT_THAT(cache("ls").output, HasSubstr("1 libraries"));
  shell("touch -d '2 days ago' cache/*.so");
  EXPECT_THAT(cache("prune --days 3").output, HasSubstr("0 removed"));
  EXPECT_THAT(cache("ls").output, HasSubstr(" 2 days "));
  EXPECT_THAT(cache("prune --days 1").output, HasSubstr("1 removed"));
}

TEST_F(CacheVerb, PruneOfNoDaysRemovesAll) {
  EXPECT_THAT(cache("prune --days 0").output, HasSubstr("1 removed"));
  EXPECT_THAT(cache("ls").output, HasSubstr("0 libraries"));
}

TEST_F(CacheVerb, TakesAnotherFolder) {
  EXPECT_THAT(run("cache ls --folder " + (folder_ / "cache").string()).output,
              HasSubstr("1 libraries"));
  EXPECT_EQ(cache("ls --folder " + (folder_ / "none").string()).status, 2);
}

TEST_F(CacheVerb, RefusesAFolderThatOthersMayWriteTo) {
  std::filesystem::permissions((folder_ / "cache"), std::filesystem::perms::all);
  const Result result = cache("ls");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.errors, HasSubstr("nobody else may write to"));
}

}  // namespace
}  // namespace lockstep::launcher
