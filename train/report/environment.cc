#include "train/report/environment.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <lzma.h>
#include <sys/utsname.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "core/base/files/regular_file.h"
#include "core/device/arithmetic_facts.h"
#include "train/report/machine.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

/// Largest file of git that is read: packed-refs has a line for each reference.
constexpr uint64_t kMostGitBytes = uint64_t{64} << 20;

/// Returns the text of one of git's files; empty if it cannot be read.
std::string git_text(const fs::path& file) {
  try {
    return read_whole_file(file, kMostGitBytes);
  } catch (const FileError&) {
    return "";
  }
}

std::string first_line(const fs::path& file) {
  const std::string text = git_text(file);
  return text.substr(0, text.find('\n'));
}

/// Finds the git directory of the working tree that contains `start`. In worktrees and submodules
/// `.git` is a file with a line "gitdir: PATH".
std::optional<fs::path> git_folder(const fs::path& start) {
  std::error_code failed;
  for (fs::path folder = fs::absolute(start, failed).lexically_normal();;
       folder = folder.parent_path()) {
    const fs::path git = folder / ".git";
    if (fs::is_directory(git, failed)) return git;
    constexpr std::string_view kPointer = "gitdir: ";
    const std::string line = first_line(git);
    if (line.starts_with(kPointer)) return folder / line.substr(kPointer.size());
    if (folder == folder.parent_path()) return std::nullopt;
  }
}

/// Returns the commit of `reference` ("refs/heads/main"), from its own file or from packed-refs.
std::string resolve(const fs::path& git, const std::string& reference) {
  const std::string common_line = first_line(git / "commondir");
  const fs::path common = common_line.empty() ? git : git / common_line;
  for (const fs::path& folder : {git, common}) {
    const std::string commit = first_line(folder / reference);
    if (!commit.empty()) return commit;
  }
  std::istringstream packed(git_text(common / "packed-refs"));
  for (std::string line; std::getline(packed, line);) {
    if (line.ends_with(" " + reference)) return line.substr(0, line.find(' '));
  }
  return "";
}

OrderedJson or_null(std::string text) {
  return text.empty() ? OrderedJson() : OrderedJson(std::move(text));
}

std::string local_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &parts)};
}

std::map<std::string, std::string> known_libraries() {
  return {{"bzip2", BZ2_bzlibVersion()},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                              FMT_VERSION % 100)},
          {"glibc", gnu_get_libc_version()},
          {"liblzma", lzma_version_string()},
          {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                        NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
          {"zlib", zlibVersion()}};
}

}  // namespace

std::string environment_json(const EnvironmentFacts& facts) {
  utsname system{};
  ::uname(&system);
  std::error_code failed;
  // Searches from the program's own path, so that the working directory does not matter.
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  std::map<std::string, std::string> libraries = known_libraries();
  libraries.insert(facts.libraries.begin(), facts.libraries.end());

  OrderedJson json;
  json["version"] = or_null(facts.version);
  json["commit"] = or_null(git_commit(program.parent_path()).value_or(""));
  json["start_time"] = local_time();
  json["command_line"] = facts.command_line;
  if (!facts.fault.empty()) json["injected_fault"] = facts.fault;
  json["working_directory"] = or_null(fs::current_path(failed).string());
  json["host"] = or_null(system.nodename);
  json["os"] = or_null(operating_system());
  json["kernel"] = or_null(fmt::format("{} {}", system.sysname, system.release));
  json["cpu"] = or_null(cpu_model());
  json["isa"] = isa_features();
  json["cores_allowed"] = cores_allowed();
  json["memory_allowed_bytes"] = memory_allowed();
  json["threads"] = facts.threads;
  for (const ArithmeticFact& fact : arithmetic_facts(facts.device)) {
    if (fact.name == "compiler") json["compiler"] = or_null(fact.value);
    json["arithmetic"][fact.name] = fact.value;
  }
  json["libraries"] = libraries;
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::optional<std::string> git_commit(const fs::path& folder) {
  const std::optional<fs::path> git = git_folder(folder);
  if (!git) return std::nullopt;
  std::string commit = first_line(*git / "HEAD");
  constexpr std::string_view kReference = "ref: ";
  if (commit.starts_with(kReference)) commit = resolve(*git, commit.substr(kReference.size()));
  const bool is_hash = commit.size() >= 40 && std::ranges::all_of(commit, [](unsigned char c) {
                         return std::isxdigit(c) != 0;
                       });
  return is_hash ? std::optional(commit) : std::nullopt;
}

}  // namespace lockstep::train
