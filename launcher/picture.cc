#include "launcher/picture.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/process/process_environment.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

constexpr const char* kConverter = "rsvg-convert";

}  // namespace

void check_picture(const std::string& path, const std::string& verb) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".svg") return;
  LS_CHECK(ending == ".png" || ending == ".pdf", ConfigError,
           "[{}] {} has no ending that says what to write: expected FILE.svg, FILE.png or "
           "FILE.pdf.",
           verb, path);
  LS_CHECK(
      ProcessEnvironment().file_of(kConverter) != kConverter, ConfigError,
      "[{}] {} cannot be drawn: expected the program {} on PATH, which makes {} files. Install "
      "the package librsvg2-bin, or write FILE.svg.",
      verb, path, kConverter, ending);
}

void write_picture(const std::string& path, const std::string& svg, const std::string& verb) {
  check_picture(path, verb);
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".svg") return write_text(path, svg);
  const std::string source = path + ".svg";
  write_text(source, svg);
  const int status =
      run_tool({kConverter, "--format", ending.substr(1), "--zoom", "2", "--output", path, source});
  std::error_code ignored;
  fs::remove(source, ignored);
  LS_CHECK(status == 0, DataError, "[{}] {} could not draw {}: it ended with status {}.", verb,
           kConverter, path, status);
}

int run_tool(const std::vector<std::string>& command) {
  std::vector<const char*> arguments;
  for (const std::string& word : command) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, arguments[0], nullptr, nullptr,
                                     const_cast<char* const*>(arguments.data()), environ);
  int status = 0;
  if (failure != 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace lockstep::launcher
