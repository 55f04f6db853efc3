// Files whose contents come from elsewhere are opened in one file and JSON is parsed in one file,
// so that no reader waits for a FIFO, maps without a limit or recurses without one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Rule {
  std::vector<std::string> words;  ///< lines without any of them need no regular expression
  std::regex call;
  std::string instead;
  std::set<std::string> places;  ///< files that may have it, each for a reason given below
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      // These read files of /proc and /sys, which are the kernel's.
      {{"fstream", "open"},
       std::regex(R"(\b(ifstream|fstream|fopen|freopen|gzopen)\b)"),
       "core/base/files/regular_file.h",
       {"core/base/control_groups.cc", "core/base/service_thread.cc", "launcher/memory_room.cc",
        "dist/nccl/nccl_device.cc", "dist/rendezvous/core_budget.cc",
        "dist/transport/shared_memory.cc", "dist/transport/tcp_transport.cc",
        "launcher/bench/busy_time.cc", "train/report/health.cc", "train/report/machine.cc"}},
      // The allocator and the launcher read /proc, a run lock locks its file, the others open
      // /dev/null.
      {{"O_RDONLY"},
       std::regex(R"(\bO_RDONLY\b(?! \| O_DIRECTORY))"),
       "core/base/files/regular_file.h",
       {"compile/native/toolchain.cc", "core/base/files/regular_file.cc",
        "core/memory/address_space.cc", "dist/rendezvous/store_server.cc",
        "launcher/launch/child_process.cc", "launcher/standard_streams.cc",
        "train/report/run_lock.cc"}},
      // The others map memory that they made.
      {{"mmap"},
       std::regex(R"(\bmmap\()"),
       "core/base/files/mapped_file.h",
       {"core/base/files/mapped_file.cc", "core/base/spans/span_recorder.cc",
        "core/memory/address_space.cc", "core/memory/cpu_memory.cc",
        "dist/transport/shared_memory.cc", "kernels/host/host_memory.cc"}},
      // SAX readers keep no document, so that depth costs them nothing.
      {{"son::"},
       std::regex(R"([Jj]son::(parse|accept|sax_parse|from_\w+)\()"),
       "core/base/parse_json.h",
       {"core/base/parse_json.cc", "data/json_lines.cc", "data/tokenizers/bpe_vocabulary.cc",
        "train/weights/safetensors_header.cc"}},
  };
  return kRules;
}

/// Tests may do as they like, but not the programs and readers among them.
bool is_bound(const std::string& path) {
  static const std::set<std::string> ours = {"core",    "kernels", "autograd", "compile",
                                             "dist",    "nn",      "optim",    "train",
                                             "configs", "data",    "launcher", "profile"};
  const bool program = path.starts_with("tests/conformance/") || path.starts_with("tests/parity/");
  return ours.contains(top_folder(path)) || (program && !path.ends_with("_test.cc"));
}

std::vector<std::string> strays(const std::string& path, const std::string& text) {
  std::vector<std::string> found;
  if (!is_bound(path)) return found;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string code = line.substr(0, line.find("//"));
    if (code.starts_with("#include")) continue;
    for (const Rule& rule : rules()) {
      const bool may_match = std::ranges::any_of(
          rule.words, [&](const std::string& word) { return code.find(word) != code.npos; });
      if (!may_match || rule.places.contains(path) || !std::regex_search(code, rule.call)) continue;
      found.push_back(path + ":" + std::to_string(number) + ": use " + rule.instead);
    }
  }
  return found;
}

TEST(ForeignFiles, AreOpenedAndParsedInOnePlace) {
  const std::string root = LOCKSTEP_SOURCE_DIR;
  std::vector<std::string> found;
  for (const SourceFile& file : read_source_tree(root)) {
    const auto in_file = strays(file.path, repository_text(file.path));
    found.insert(found.end(), in_file.begin(), in_file.end());
  }
  EXPECT_TRUE(found.empty()) << join(found);
}

TEST(ForeignFiles, AStrayReaderIsNamedWithItsLine) {
  EXPECT_THAT(strays("train/a.cc", "int a;\nstd::ifstream file(path);\n"),
              ElementsAre("train/a.cc:2: use core/base/files/regular_file.h"));
  EXPECT_THAT(strays("data/a.cc", "FileDescriptor(path, O_RDONLY)"),
              ElementsAre("data/a.cc:1: use core/base/files/regular_file.h"));
  EXPECT_THAT(strays("data/a.cc", "mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0)"),
              ElementsAre("data/a.cc:1: use core/base/files/mapped_file.h"));
  EXPECT_THAT(strays("tests/parity/a.cc", "Json::parse(text); // not nlohmann::json::accept(x)"),
              ElementsAre("tests/parity/a.cc:1: use core/base/parse_json.h"));
  EXPECT_THAT(strays("data/a.cc", "FileDescriptor(folder, O_RDONLY | O_DIRECTORY).sync();"),
              IsEmpty());
  EXPECT_THAT(strays("tests/data/a_test.cc", "std::ifstream file(path);"), IsEmpty());
}

}  // namespace
}  // namespace lockstep::structure
