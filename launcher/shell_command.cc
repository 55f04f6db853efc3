#include "launcher/shell_command.h"

#include <algorithm>
#include <array>

namespace lockstep::launcher {

namespace {

/// Told to ranks by a launcher, anew in every job.
constexpr std::array kOfOneJob = {
    "LOCKSTEP_JOB_ID",      "LOCKSTEP_JOB_SECRET",       "LOCKSTEP_KEEP_SLOW",
    "LOCKSTEP_LOCAL_RANK",  "LOCKSTEP_LOCAL_WORLD_SIZE", "LOCKSTEP_MASTER_ADDR",
    "LOCKSTEP_MASTER_PORT", "LOCKSTEP_NODE_COUNT",       "LOCKSTEP_NODE_RANK",
    "LOCKSTEP_RANK",        "LOCKSTEP_RESTART_COUNT",    "LOCKSTEP_SUPERVISED",
    "LOCKSTEP_WORLD_SIZE"};

}  // namespace

std::vector<std::string> going_on(const std::vector<std::string>& arguments,
                                  const std::string& directory) {
  const std::string option = "--run-dir";
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--fresh") continue;
    if (!directory.empty() && arguments[i].starts_with(option + "=")) continue;
    if (!directory.empty() && arguments[i] == option) {
      ++i;  // and its value
      continue;
    }
    words.push_back(arguments[i]);
  }
  if (directory.empty()) return words;
  words.push_back(option);
  words.push_back(directory);
  return words;
}

std::string assignments(const config::Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    if (std::ranges::find(kOfOneJob, name) != kOfOneJob.end()) continue;
    text += name + "=" + shell_text({value}) + " ";
  }
  return text;
}

}  // namespace lockstep::launcher
