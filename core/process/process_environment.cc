#include "core/process/process_environment.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace lockstep {

ProcessEnvironment::ProcessEnvironment() {
  for (char** each = environ; *each != nullptr; ++each) variables_.emplace_back(*each);
}

std::string ProcessEnvironment::value(const std::string& name) const {
  const std::string begin = name + "=";
  for (const std::string& each : variables_) {
    if (each.starts_with(begin)) return each.substr(begin.size());
  }
  return "";
}

std::string ProcessEnvironment::file_of(const std::string& program) const {
  namespace fs = std::filesystem;
  if (program.find('/') != program.npos) return program;
  const std::string folders = value("PATH");
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path file = fs::path(folders.substr(begin, end - begin)) / program;
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0) {
      return file.is_absolute() ? file.string() : "./" + file.string();
    }
    begin = end + 1;
  }
  return program;
}

}  // namespace lockstep
