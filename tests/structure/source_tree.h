#pragma once

#include <string>
#include <vector>

namespace lockstep::structure {

/// One `#include` line.
struct Include {
  int line = 0;
  std::string path;
};

/// A source file as the structure rules see it.
struct SourceFile {
  std::string path;  ///< from the repository root
  int lines = 0;
  bool defines_operators = false;  ///< contains an LS_OP block
  bool guarded = false;            ///< has `#pragma once` or an include guard
  std::vector<Include> includes;
};

/// The first folder of a path: "core" for "core/ops/matmul/matmul.cc", "" for a file in the root.
std::string top_folder(const std::string& path);
/// The room of a path: its first two folders ("core/ops" for "core/ops/matmul/matmul.cc"), or the
/// one folder of a file that lies directly in it.
std::string room(const std::string& path);
bool is_header(const std::string& path);

/// Parses one file's text.
SourceFile parse_source(std::string path, const std::string& text);

/// Every C++, CUDA, .inc and .proto file in the source folders under `root`, sorted by path.
std::vector<SourceFile> read_source_tree(const std::string& root);

/// The text of a file, by its path from the repository root; empty if it cannot be read.
std::string repository_text(const std::string& path);

/// Lines joined for a failure message.
std::string join(const std::vector<std::string>& lines);

}  // namespace lockstep::structure
