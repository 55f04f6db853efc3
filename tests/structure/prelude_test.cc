// The library's files are compiled with a prelude of standard headers (CMakeLists.txt), so the
// compiler does not notice a header of ours that uses one of them without including it; such a
// header would not compile in a user's project. This test finds them.

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

/// Names that identify a use of each header of the prelude, and that few other headers declare.
const std::map<std::string, std::string>& names_by_header() {
  static const std::map<std::string, std::string> names = {
      {"algorithm",
       "std::(sort|stable_sort|find_if|any_of|all_of|none_of|copy_n|fill_n|max_element)"},
      {"array", "std::array"},
      {"atomic", "std::atomic(_bool|_ref)?"},
      {"chrono", "std::chrono"},
      {"cmath", "std::(sqrt|exp|log|pow|isnan|isfinite|isinf|floor|ceil|fma|fmod)"},
      {"cstdint", "u?int(8|16|32|64)_t"},
      {"cstring", "std::(memcpy|memset|memcmp|memmove|strlen)"},
      {"functional", "std::(function|hash|plus|less)"},
      {"limits", "std::numeric_limits"},
      {"map", "std::(map|multimap)"},
      {"memory", "std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)"},
      {"mutex", "std::(mutex|lock_guard|unique_lock|scoped_lock|once_flag)"},
      {"optional", "std::(optional|nullopt)"},
      {"span", "std::span"},
      {"string", "std::(string|to_string)"},
      {"string_view", "std::string_view"},
      {"tuple", "std::(tuple|tie|make_tuple)"},
      {"utility", "std::(pair|exchange|index_sequence|move|forward)"},
      {"vector", "std::vector"},
      {"fmt/format.h", "fmt::(format|memory_buffer|formatter)"},
  };
  return names;
}

/// Headers that each of these includes too, by the standard or in practice.
const std::map<std::string, std::set<std::string>>& also_brought() {
  static const std::map<std::string, std::set<std::string>> brought = {
      {"string", {"string_view"}},
      {"map", {"utility"}},
      {"vector", {"utility"}},
      {"memory", {"utility"}},
      {"functional", {"utility"}},
      {"tuple", {"utility"}},
      {"optional", {"utility"}},
      {"algorithm", {"utility"}},
      {"array", {"utility"}},
      {"string_view", {"utility"}},
      {"fmt/core.h", {"fmt/format.h", "string"}},
      {"stdint.h", {"cstdint"}},
  };
  return brought;
}

std::string without_comments_and_texts(const std::string& text) {
  static const std::regex dropped(R"(//[^\n]*|"(\\.|[^"\\\n])*")");
  return std::regex_replace(text, dropped, "");
}

struct Header {
  std::string code;
  std::set<std::string> includes;
};
using Headers = std::map<std::string, Header>;

Header parse(const std::string& text) {
  static const std::regex include(R"re(#include\s+[<"]([^>"]+)[>"])re");
  Header header{without_comments_and_texts(text), {}};
  for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match) {
    header.includes.insert((*match)[1]);
  }
  return header;
}

/// Adds everything that a header includes, directly or through headers of ours.
void collect(const Headers& headers, const std::string& path, std::set<std::string>& found) {
  if (!found.insert(path).second) return;
  const auto also = also_brought().find(path);
  if (also != also_brought().end()) found.insert(also->second.begin(), also->second.end());
  const auto header = headers.find(path);
  if (header == headers.end()) return;
  for (const std::string& each : header->second.includes) collect(headers, each, found);
}

/// "PATH: <HEADER>" for each standard header that a header uses without including it.
std::vector<std::string> missing_includes(const Headers& headers) {
  std::vector<std::string> missing;
  for (const auto& [path, header] : headers) {
    std::set<std::string> included;
    collect(headers, path, included);
    for (const auto& [needed, names] : names_by_header()) {
      if (included.contains(needed)) continue;
      if (std::regex_search(header.code, std::regex("\\b" + names + "\\b"))) {
        missing.push_back(path + ": <" + needed + ">");
      }
    }
  }
  return missing;
}

TEST(Prelude, HeadersIncludeWhatItBrings) {
  const std::string root = LOCKSTEP_SOURCE_DIR;
  Headers headers;
  for (const SourceFile& file : read_source_tree(root)) {
    // Tests and benchmarks are compiled with other preludes; examples and plug-ins stand alone.
    static const std::set<std::string> ours = {"core", "kernels",  "autograd", "compile",
                                               "dist", "nn",       "train",    "configs",
                                               "data", "launcher", "profile"};
    if (!is_header(file.path) || !ours.contains(top_folder(file.path))) continue;
    headers.emplace(file.path, parse(repository_text(file.path)));
  }
  ASSERT_GT(headers.size(), 200U);
  const std::vector<std::string> missing = missing_includes(headers);
  EXPECT_TRUE(missing.empty()) << "include, in these headers:\n" << join(missing);
}

TEST(Prelude, EveryHeaderOfItIsLookedFor) {
  const std::string text = repository_text("CMakeLists.txt");
  const size_t begin = text.find("target_precompile_headers(lockstep_prelude");
  ASSERT_NE(begin, text.npos);
  const std::string list = text.substr(begin, text.find(')', begin) - begin);
  const std::regex header("<([^>]+)>");
  size_t count = 0;
  for (std::sregex_iterator match(list.begin(), list.end(), header), end; match != end; ++match) {
    EXPECT_TRUE(names_by_header().contains((*match)[1])) << (*match)[1];
    ++count;
  }
  EXPECT_EQ(count, names_by_header().size());
}

TEST(Prelude, AMissingIncludeIsNamed) {
  const Headers headers = {
      {"core/a.h", parse("#include <vector>\nstd::vector<int> a;\n")},
      {"core/b.h", parse("#include \"core/a.h\"\nstd::vector<int> b;  // a std::string\n")},
      {"core/c.h", parse("#include \"core/a.h\"\nstd::string c = \"std::span\";\n")},
  };
  EXPECT_EQ(missing_includes(headers), std::vector<std::string>{"core/c.h: <string>"});
}

}  // namespace
}  // namespace lockstep::structure
