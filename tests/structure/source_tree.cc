#include "tests/structure/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace lockstep::structure {

namespace fs = std::filesystem;

std::string top_folder(const std::string& path) {
  const size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string room(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  const size_t second = folder.find('/', top_folder(path).size() + 1);
  return second == std::string::npos ? folder : folder.substr(0, second);
}

bool is_header(const std::string& path) { return path.ends_with(".h") || path.ends_with(".cuh"); }

SourceFile parse_source(std::string path, const std::string& text) {
  SourceFile file{.path = std::move(path)};
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    ++file.lines;
    file.guarded |= line == "#pragma once" || line.starts_with("#ifndef LOCKSTEP_");
    file.defines_operators |= line.starts_with("LS_OP");
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    const size_t open = line.find_first_of("\"<", at);
    if (open == std::string::npos) continue;
    const size_t close = line.find_first_of("\">", open + 1);
    if (close == std::string::npos) continue;
    file.includes.push_back({file.lines, line.substr(open + 1, close - open - 1)});
  }
  return file;
}

std::vector<SourceFile> read_source_tree(const std::string& root) {
  std::vector<SourceFile> files;
  for (const char* folder :
       {"autograd", "benchmarks", "compile", "configs", "core", "data", "dist", "examples",
        "include", "kernels", "launcher", "nn", "optim", "profile", "tests", "train"}) {
    const fs::path start = fs::path(root) / folder;
    if (!fs::exists(start)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(start)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".cuh" &&
          extension != ".inc" && extension != ".proto") {
        continue;
      }
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      files.push_back(parse_source(fs::relative(entry.path(), root).generic_string(), text));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::string repository_text(const std::string& path) {
  std::ifstream file(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace lockstep::structure
