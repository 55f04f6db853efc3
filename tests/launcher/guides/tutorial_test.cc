// The commands of docs/tutorial.md, run in their order.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;

struct Command {
  std::string line;
  int status = 0;
};

/// The lines of the blocks that begin with ```sh. "# ends with status N" tells a status other than
/// 0.
std::vector<Command> commands_of(const std::string& page) {
  static const std::regex told("\\s+# ends with status ([0-9]+)$");
  std::vector<Command> commands;
  std::istringstream lines(page);
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      in_block = line == "```sh";
    } else if (in_block) {
      std::smatch status;
      if (std::regex_search(line, status, told)) {
        commands.push_back({status.prefix().str(), std::stoi(status[1])});
      } else {
        commands.push_back({line, 0});
      }
    }
  }
  return commands;
}

class Tutorial : public Program {
 protected:
  Result type(const Command& command) const {
    return shell(
        fmt::format("export PATH='{}':\"$PATH\" SOURCE='{}' OMPI_ALLOW_RUN_AS_ROOT=1 "
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n{}",
                    LOCKSTEP_BIN_DIR, LOCKSTEP_SOURCE_DIR, command.line));
  }
};

TEST_F(Tutorial, EveryCommandEndsAsThePageSays) {
  if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
  const std::vector<Command> commands =
      commands_of(file_content(LOCKSTEP_SOURCE_DIR "/docs/tutorial.md"));
  ASSERT_GT(commands.size(), 20U);
  for (const Command& each : commands) {
    const Result result = type(each);
    ASSERT_EQ(result.status, each.status) << each.line << "\n" << result.output << result.errors;
    if (each.line.starts_with("lockstep compare")) {
      EXPECT_THAT(result.output, HasSubstr("weights: identical")) << each.line;
    }
  }
}

}  // namespace
}  // namespace lockstep::launcher
