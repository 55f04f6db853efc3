// The documentation names files that exist. Checked are README.md, docs/*.md and the READMEs of
// benchmarks and examples: words in backticks and in fenced blocks, and the targets of links.

#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Folders of the repository. A word that begins with one of them and a slash is a path.
const std::set<std::string>& folders() {
  static const std::set<std::string> kFolders = {
      "autograd", "benchmarks", "cmake",    "compile", "configs", "core",     "data",
      "dist",     "docs",       "examples", "include", "kernels", "launcher", "nn",
      "optim",    "profile",    "python",   "tests",   "train"};
  return kFolders;
}

/// What a path in the documentation may name.
struct Tree {
  std::set<std::string> paths;    ///< files and folders, from the repository root
  std::set<std::string> sources;  ///< names of source files, and of headers that they include
};

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Tree read_tree(const std::string& root) {
  Tree tree;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file()) tree.paths.insert(name);
    if (!entry.is_directory() || !folders().contains(name)) continue;
    tree.paths.insert(name);
    for (const auto& inner : fs::recursive_directory_iterator(entry.path())) {
      tree.paths.insert(inner.path().lexically_relative(root).generic_string());
    }
  }
  for (const SourceFile& file : read_source_tree(root)) {
    tree.sources.insert(name_of(file.path));
    for (const Include& include : file.includes) tree.sources.insert(name_of(include.path));
  }
  return tree;
}

bool has(const Tree& tree, std::string path) {
  while (path.ends_with('/')) path.pop_back();
  if (path.find('*') == path.npos) return tree.paths.contains(path);
  return std::any_of(tree.paths.begin(), tree.paths.end(), [&](const std::string& each) {
    return fnmatch(path.c_str(), each.c_str(), FNM_PATHNAME) == 0;
  });
}

/// What one line of Markdown may name files with.
struct Mentions {
  std::vector<std::string> words;  ///< of code
  std::vector<std::string> links;  ///< targets, as written
};

/// Reads Markdown line by line; a code span may end in a later line of its paragraph.
class Markdown {
 public:
  Mentions read(std::string_view line) {
    Mentions found;
    const size_t first = line.find_first_not_of(' ');
    const bool is_fence = first != line.npos && line.substr(first).starts_with("```");
    if (is_fence) in_block_ = !in_block_;
    if (is_fence || first == line.npos) {
      in_span_ = false;
      return found;
    }
    std::string word;
    const auto end_word = [&] {
      if (!word.empty()) found.words.push_back(std::exchange(word, {}));
    };
    for (size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '`' && !in_block_) {
        in_span_ = !in_span_;
        end_word();
      } else if (in_block_ || in_span_) {
        if (kSeparators.find(line[at]) != kSeparators.npos) {
          end_word();
        } else {
          word += line[at];
        }
      } else if (line.substr(at, 2) == "](") {
        const size_t end = line.find(')', at);
        if (end == line.npos) break;
        found.links.emplace_back(line.substr(at + 2, end - at - 2));
        at = end;
      }
    }
    end_word();
    return found;
  }

 private:
  static constexpr std::string_view kSeparators = " \t\"'(),;=|";

  bool in_block_ = false;  ///< between two fences
  bool in_span_ = false;   ///< between two backticks
};

/// A word without punctuation at its end and without the line of "core/a.cc:12" or
/// "core/a.cc:12:3".
std::string without_place(std::string word) {
  static const std::regex place("(:[0-9]+){1,2}$");
  while (!word.empty() && std::string_view(".,;:").find(word.back()) != std::string_view::npos) {
    word.pop_back();
  }
  return std::regex_replace(word, place, "");
}

/// Whether a path stands for others: core/<family>, kernels/{cpu,cuda}, step-%08d, models/NAME.h.
bool is_placeholder(const std::string& path) {
  static const std::regex sign(R"([<>{}$%\\]|\.\.\.)");
  static const std::regex capitals("(^|[^A-Za-z0-9])[A-Z]{2,}([^A-Za-z0-9]|$)");
  if (std::regex_search(path, sign)) return true;
  return !path.ends_with(".md") && std::regex_search(path, capitals);
}

/// Whether a word is the name of a source file without its folder, such as "heap.h".
bool is_source_name(const std::string& word) {
  static const std::regex name(R"([A-Za-z0-9][^/]*\.(h|cc|cu|cuh|proto))");
  return std::regex_match(word, name);
}

bool is_missing(const Tree& tree, const std::string& word) {
  if (word.empty() || is_placeholder(word)) return false;
  if (folders().contains(top_folder(word))) return !has(tree, word);
  return is_source_name(word) && !tree.sources.contains(word);
}

/// The path from the repository root that a link in `document` leads to; "" for one that leads to
/// another site or to a heading of the same page.
std::string path_of_link(const std::string& document, const std::string& link) {
  const std::string target = link.substr(0, link.find('#'));
  if (target.empty() || target.find(':') != target.npos) return "";
  return (fs::path(document).parent_path() / target).lexically_normal().generic_string();
}

/// "docs/memory.md:7: core/gone.h" for each path in the text of a document that names nothing.
std::vector<std::string> missing_paths(const Tree& tree, const std::string& document,
                                       const std::string& text) {
  std::vector<std::string> found;
  Markdown markdown;
  int number = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto add = [&](const std::string& path) {
      found.push_back(document + ":" + std::to_string(number) + ": " + path);
    };
    const Mentions mentions = markdown.read(line);
    for (const std::string& each : mentions.words) {
      const std::string word = without_place(each);
      if (is_missing(tree, word)) add(word);
    }
    for (const std::string& each : mentions.links) {
      const std::string path = path_of_link(document, each);
      if (!path.empty() && !has(tree, path)) add(path);
    }
  }
  return found;
}

std::vector<std::string> documents(const Tree& tree) {
  std::vector<std::string> found;
  for (const std::string& path : tree.paths) {
    const std::string top = top_folder(path);
    const bool is_page = top == "docs" && path.ends_with(".md");
    const bool is_readme =
        (top == "benchmarks" || top == "examples") && name_of(path) == "README.md";
    if (path == "README.md" || is_page || is_readme) found.push_back(path);
  }
  return found;
}

/// Pages of docs/ to which README.md has no link.
std::vector<std::string> unlinked_pages(const Tree& tree, const std::string& readme) {
  std::set<std::string> linked;
  Markdown markdown;
  std::istringstream lines(readme);
  for (std::string line; std::getline(lines, line);) {
    for (const std::string& link : markdown.read(line).links) {
      linked.insert(path_of_link("README.md", link));
    }
  }
  std::vector<std::string> found;
  for (const std::string& path : documents(tree)) {
    if (top_folder(path) == "docs" && !linked.contains(path)) found.push_back(path);
  }
  return found;
}

TEST(Documentation, EveryPathThatItNamesExists) {
  const Tree tree = read_tree(LOCKSTEP_SOURCE_DIR);
  const std::vector<std::string> pages = documents(tree);
  ASSERT_GT(pages.size(), 20U);
  std::vector<std::string> found;
  for (const std::string& page : pages) {
    for (std::string& each : missing_paths(tree, page, repository_text(page))) {
      found.push_back(std::move(each));
    }
  }
  EXPECT_TRUE(found.empty()) << "these name no file or folder:\n" << join(found);
}

TEST(Documentation, TheReadmeLinksToEveryPage) {
  const auto found = unlinked_pages(read_tree(LOCKSTEP_SOURCE_DIR), repository_text("README.md"));
  EXPECT_TRUE(found.empty()) << join(found);
}

// The rules above pass on documentation that is right; these show that they would not pass on
// another one.

const Tree& made_up_tree() {
  static const Tree kTree = {
      .paths = {"README.md", "configs", "configs/examples", "configs/examples/gpt.txtpb", "core",
                "core/memory", "core/memory/heap.h", "docs", "docs/a.md", "docs/b.md"},
      .sources = {"heap.h"}};
  return kTree;
}

TEST(Documentation, FilesFoldersPatternsAndLinesAreFound) {
  EXPECT_THAT(
      missing_paths(made_up_tree(), "docs/a.md",
                    "`core/memory/heap.h`, `heap.h`, `core/memory/` and `core/memory`\n"
                    "`core/memory/heap.h:12`: at `core/memory/heap.h:12:3`.\n"
                    "`configs/examples/*.txtpb` [b](b.md#top) [heap](../core/memory/heap.h)\n"
                    "```\nlockstep train configs/examples/gpt.txtpb --set a=b\n```\n"),
      IsEmpty());
}

TEST(Documentation, OtherPathsAreLeftAlone) {
  EXPECT_THAT(missing_paths(made_up_tree(), "README.md",
                            "`build/release/bin/lockstep` `/usr/include/a.h` `runs/core` `a/b.h`\n"
                            "`core/<family>/a.cc` `core/{a,b}/c.cc` `core/memory/NAME.h` `.cc`\n"
                            "core/gone.h outside of code, [here](#top) and\n"
                            "[there](https://example.org/core/gone.h)\n"),
              IsEmpty());
}

TEST(Documentation, APathThatNamesNothingIsNamedWithItsLine) {
  EXPECT_THAT(missing_paths(made_up_tree(), "README.md",
                            "`core/memory/gone.h:7`, `gone.h`\n"
                            "and `configs/*.txtpb`, `configs\n"
                            "configs/gone/` as well as [c](docs/c.md).\n"
                            "```\n#include \"core/gone.h\"\n```\n"
                            "`core/also_gone.h`\n"),
              ElementsAre("README.md:1: core/memory/gone.h", "README.md:1: gone.h",
                          "README.md:2: configs/*.txtpb", "README.md:3: configs/gone/",
                          "README.md:3: docs/c.md", "README.md:5: core/gone.h",
                          "README.md:7: core/also_gone.h"));
}

TEST(Documentation, LinksAreReadFromTheFolderOfTheirPage) {
  EXPECT_THAT(
      missing_paths(made_up_tree(), "docs/a.md", "[heap](core/memory/heap.h) [up](../../docs)\n"),
      ElementsAre("docs/a.md:1: docs/core/memory/heap.h", "docs/a.md:1: ../docs"));
}

TEST(Documentation, APageWithoutALinkIsNamed) {
  EXPECT_THAT(unlinked_pages(made_up_tree(), "[a](docs/a.md), `docs/b.md`\n"),
              ElementsAre("docs/b.md"));
}

}  // namespace
}  // namespace lockstep::structure
