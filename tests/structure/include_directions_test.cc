// Include directions between layers and rooms (docs/ARCHITECTURE.md), checked on the `#include`
// lines of the whole tree.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Allowed = std::map<std::string, std::set<std::string>>;

// Layers, from the lowest to the highest, with the other layers that each may include. Folders
// outside this map (tests, benchmarks, examples) may include any layer.
const Allowed& allowed_layers() {
  static const Allowed kAllowed = {
      {"core", {}},
      {"kernels", {"core"}},
      {"autograd", {"core"}},
      {"compile", {"core", "autograd"}},
      {"dist", {"core", "autograd"}},
      {"nn", {"core", "autograd"}},
      {"optim", {"core", "autograd", "nn"}},
      {"configs", {"core"}},
      {"data", {"core"}},
      {"profile", {"core", "autograd"}},
      {"train", {"core", "autograd", "compile", "dist", "nn", "data", "configs"}},
      {"launcher",
       {"core", "autograd", "compile", "dist", "nn", "optim", "data", "configs", "train",
        "profile"}},
  };
  return kAllowed;
}

// Rooms of a layer, with the other rooms of it that each may include. A room that is not named here
// may include no other room of its layer.
const Allowed& allowed_rooms() {
  static const Allowed kAllowed = {
      {"core/tensor", {"core/base"}},
      {"core/process", {"core/base"}},
      {"core/device", {"core/base", "core/tensor"}},
      {"core/memory", {"core/base", "core/tensor", "core/device"}},
      {"core/cuda", {"core/base", "core/tensor", "core/device", "core/memory"}},
      {"core/dispatch", {"core/base", "core/tensor", "core/device", "core/memory"}},
      {"core/ops", {"core/base", "core/tensor", "core/device", "core/memory", "core/dispatch"}},
      {"core/plugin",
       {"core/base", "core/tensor", "core/device", "core/memory", "core/cuda", "core/dispatch",
        "core/ops"}},
      {"kernels/cpu", {"kernels/common"}},
      {"kernels/cuda", {"kernels/common"}},
      {"kernels/host", {"kernels/common"}},
      {"kernels/pointwise", {"kernels/common", "kernels/cpu", "kernels/cuda"}},
      {"compile", {"compile/graph", "compile/native"}},
      {"dist/collectives", {"dist/transport"}},
      {"dist/flight", {"dist/collectives", "dist/rendezvous"}},
      {"dist/group", {"dist/transport", "dist/collectives", "dist/rendezvous", "dist/flight"}},
      {"dist/nccl", {"dist/transport", "dist/collectives", "dist/rendezvous", "dist/group"}},
      {"dist/ddp", {"dist/collectives", "dist/rendezvous", "dist/group"}},
      {"dist/local", {"dist/rendezvous", "dist/group", "dist/ddp", "dist/collectives"}},
      {"dist/fsdp", {"dist/collectives", "dist/group", "dist/ddp"}},
      {"dist/simulate", {"dist/collectives", "dist/ddp", "dist/fsdp", "dist/local"}},
      {"nn", {"nn/recurrent", "nn/scaling"}},
      {"nn/adapters", {"nn"}},
      {"nn/models", {"nn", "nn/adapters", "nn/scaling"}},
      {"data", {"data/parquet", "data/program", "data/tokenizers"}},
      {"data/loader", {"data"}},
      {"train", {"train/weights", "train/report", "train/optimizer", "train/watch"}},
      {"train/joining", {"train"}},
      {"train/run", {"train", "train/joining", "train/weights", "train/report", "train/optimizer"}},
      {"train/page", {"train/report", "train/run"}},
      {"train/bisect",
       {"train", "train/run", "train/weights", "train/report", "train/optimizer", "train/watch"}},
      {"launcher/launch", {"launcher"}},
      {"launcher/bench", {"launcher"}},
      {"launcher/completion", {"launcher"}},
      {"launcher/doctor", {"launcher"}},
      {"launcher", {"launcher/stress"}},
  };
  return kAllowed;
}

std::string at(const SourceFile& file, const Include& include) {
  return file.path + ":" + std::to_string(include.line) + " includes " + include.path;
}

bool may_include(const Allowed& allowed, const std::string& from, const std::string& to) {
  const auto rule = allowed.find(from);
  return from == to || (rule != allowed.end() && rule->second.contains(to));
}

std::vector<std::string> wrong_directions(const std::vector<SourceFile>& files) {
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    const std::string layer = top_folder(file.path);
    if (!allowed_layers().contains(layer)) continue;
    for (const Include& include : file.includes) {
      std::string from = layer;
      std::string to = top_folder(include.path);
      // The image of a CUDA module is generated data, wherever its source lies.
      const bool ours = (allowed_layers().contains(to) || to == "tests" || to == "benchmarks") &&
                        !include.path.ends_with(".fatbin.h");
      bool allowed = !ours || may_include(allowed_layers(), from, to);
      if (ours && from == to) {
        from = room(file.path);
        to = room(include.path);
        allowed = may_include(allowed_rooms(), from, to);
      }
      if (!allowed) found.push_back(at(file, include) + ": " + from + " must not know " + to);
    }
  }
  return found;
}

/// Returns a cycle in `allowed`, or nothing. Rules must form no cycle: with one, two rooms could
/// include each other.
std::vector<std::string> cycle_of(const Allowed& allowed) {
  std::set<std::string> finished;
  std::vector<std::string> path;
  std::vector<std::string> cycle;
  const std::function<void(const std::string&)> visit = [&](const std::string& name) {
    if (!cycle.empty() || finished.contains(name)) return;
    const auto open = std::find(path.begin(), path.end(), name);
    if (open != path.end()) {
      cycle.assign(open, path.end());
      return;
    }
    path.push_back(name);
    const auto rule = allowed.find(name);
    if (rule != allowed.end()) {
      for (const std::string& next : rule->second) visit(next);
    }
    path.pop_back();
    finished.insert(name);
  };
  for (const auto& [name, others] : allowed) visit(name);
  return cycle;
}

/// An external header, and the files that may include it.
struct Wrapping {
  std::string header;  ///< exact name, a folder ending in '/', or a suffix starting with '*'
  std::function<bool(const std::string& path)> allowed;
  std::string where;
  bool everywhere = false;  ///< the rule also holds for tests, benchmarks and examples
};

bool in(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/");
}
bool wraps_cuda(const std::string& path) {
  return in(path, "core/cuda") || in(path, "kernels/cuda") || in(path, "dist/nccl");
}
bool speaks_protobuf(const std::string& path) {
  return path.ends_with(".cc") &&
         (in(path, "configs") || in(path, "data") || in(path, "train") || in(path, "launcher"));
}
bool not_a_header(const std::string& path) { return !is_header(path); }
bool computes_lanes(const std::string& path) {
  return not_a_header(path) || in(path, "kernels/cpu");
}
bool is_parallel_for(const std::string& path) { return path.starts_with("core/base/parallel"); }

const std::vector<Wrapping>& wrappings() {
  static const std::vector<Wrapping> kWrappings = {
      {"dnnl.hpp", [](auto& path) { return in(path, "kernels/cpu"); }, "kernels/cpu"},
      {"dnnl.h", [](auto& path) { return in(path, "kernels/cpu"); }, "kernels/cpu"},
      {"dnnl_debug.h", [](auto& path) { return in(path, "kernels/cpu"); }, "kernels/cpu"},
      {"oneapi/", [](auto& path) { return in(path, "kernels/cpu"); }, "kernels/cpu"},
      {"zstd.h", [](auto& path) { return path == "core/base/files/zstd.cc"; },
       "core/base/files/zstd.cc"},
      // The module alone links Arrow.
      {"arrow/", [](auto& path) { return in(path, "data/parquet"); }, "data/parquet"},
      {"parquet/", [](auto& path) { return in(path, "data/parquet"); }, "data/parquet"},
      {"mpi.h", [](auto& path) { return path == "dist/transport/mpi_transport.cc"; },
       "dist/transport/mpi_transport.cc"},
      {"nccl.h", wraps_cuda, "core/cuda, kernels/cuda, dist/nccl"},
      {"cuda.h", [](auto& path) { return in(path, "core/cuda"); }, "core/cuda"},
      {"cuda_runtime.h", wraps_cuda, "core/cuda, kernels/cuda, dist/nccl"},
      {"cublasLt.h", wraps_cuda, "core/cuda, kernels/cuda"},
      {"cudnn.h", wraps_cuda, "core/cuda, kernels/cuda"},
      {"nvrtc.h", [](auto& path) { return in(path, "core/cuda"); }, "core/cuda"},
      // 80 MB of the memory of a compilation.
      {"immintrin.h", computes_lanes, ".cc files, and headers of kernels/cpu"},
      {"x86intrin.h", computes_lanes, ".cc files, and headers of kernels/cpu"},
      {"omp.h", is_parallel_for, "core/base/parallel*"},
      {"*.pb.h", speaks_protobuf, ".cc files of configs, data, train and launcher"},
      {"google/protobuf/", speaks_protobuf, ".cc files of configs, data, train and launcher"},
      // Including CLI11 adds seconds to the compilation of a file.
      {"CLI/", [](auto& path) { return path == "launcher/command_line.cc"; },
       "launcher/command_line.cc", /*everywhere=*/true},
      {"nlohmann/",
       [](auto& path) { return not_a_header(path) || path == "core/base/parse_json.h"; },
       ".cc files and core/base/parse_json.h"},
      {"fmt/",
       [](auto& path) {
         return not_a_header(path) || path == "core/base/check.h" ||
                path == "autograd/tensor_formatter.h";
       },
       ".cc files, core/base/check.h and autograd/tensor_formatter.h"},
      {"core/base/check.h", not_a_header, ".cc files: it brings fmt along"},
  };
  return kWrappings;
}

bool matches(const std::string& pattern, const std::string& header) {
  if (pattern.starts_with('*')) return header.ends_with(pattern.substr(1));
  return pattern.ends_with('/') ? header.starts_with(pattern) : header == pattern;
}

std::vector<std::string> escaped_vendor_headers(const std::vector<SourceFile>& files) {
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    const bool is_layer = allowed_layers().contains(top_folder(file.path));
    for (const Include& include : file.includes) {
      for (const Wrapping& wrapping : wrappings()) {
        if (!is_layer && !wrapping.everywhere) continue;
        if (matches(wrapping.header, include.path) && !wrapping.allowed(file.path)) {
          found.push_back(at(file, include) + ", which belongs in " + wrapping.where);
        }
      }
    }
  }
  return found;
}

/// Each include cycle once, as "a.h -> b.h -> a.h".
std::vector<std::string> include_cycles(const std::vector<SourceFile>& files) {
  std::map<std::string, const SourceFile*> by_path;
  for (const SourceFile& file : files) by_path[file.path] = &file;
  std::set<std::string> finished;
  std::vector<std::string> stack;
  std::vector<std::string> found;
  const std::function<void(const SourceFile&)> visit = [&](const SourceFile& file) {
    if (finished.contains(file.path)) return;
    const auto open = std::find(stack.begin(), stack.end(), file.path);
    if (open != stack.end()) {
      std::string cycle;
      for (auto it = open; it != stack.end(); ++it) cycle += *it + " -> ";
      found.push_back(cycle + file.path);
      return;
    }
    stack.push_back(file.path);
    for (const Include& include : file.includes) {
      const auto next = by_path.find(include.path);
      if (next != by_path.end()) visit(*next->second);
    }
    stack.pop_back();
    finished.insert(file.path);
  };
  for (const SourceFile& file : files) visit(file);
  return found;
}

TEST(IncludeDirections, EveryRoomIncludesOnlyTheRoomsBelowIt) {
  const auto files = read_source_tree(LOCKSTEP_SOURCE_DIR);
  ASSERT_FALSE(files.empty());
  const auto found = wrong_directions(files);
  EXPECT_TRUE(found.empty()) << join(found);
}

TEST(IncludeDirections, TheRulesAllowNoCycle) {
  EXPECT_THAT(cycle_of(allowed_layers()), IsEmpty());
  EXPECT_THAT(cycle_of(allowed_rooms()), IsEmpty());
  EXPECT_THAT(cycle_of({{"a", {"b"}}, {"b", {"c"}}, {"c", {"b"}}}), ElementsAre("b", "c"));
}

TEST(IncludeDirections, VendorHeadersStayInTheFilesThatWrapThem) {
  const auto found = escaped_vendor_headers(read_source_tree(LOCKSTEP_SOURCE_DIR));
  EXPECT_TRUE(found.empty()) << join(found);
}

TEST(IncludeDirections, NoFileIncludesItselfThroughOthers) {
  const auto found = include_cycles(read_source_tree(LOCKSTEP_SOURCE_DIR));
  EXPECT_TRUE(found.empty()) << join(found);
}

// The rules above pass on a clean tree; the tests below show that they fail on a wrong one.

TEST(IncludeDirections, ALayerThatReachesUpIsNamedWithItsLine) {
  const auto found = wrong_directions({
      parse_source("core/tensor/tensor.cc",
                   "#include \"core/tensor/tensor.h\"\n#include \"autograd/tape.h\"\n"),
      parse_source(
          "nn/linear.cc",
          "#include \"core/tensor/tensor.h\"\n  # include \"kernels/cpu/matmul/gemm.h\"\n"),
      parse_source("tests/nn/linear_test.cc", "#include \"kernels/cpu/matmul/gemm.h\"\n"),
  });
  EXPECT_THAT(found, ElementsAre(HasSubstr("core/tensor/tensor.cc:2 includes autograd/tape.h"),
                                 HasSubstr("nn/linear.cc:2 includes kernels/cpu/matmul/gemm.h")));
}

TEST(IncludeDirections, ARoomThatReachesUpInItsLayerIsNamed) {
  const auto found = wrong_directions({
      parse_source("core/tensor/storage.cc", "#include \"core/memory/heap.h\"\n"),
      parse_source("core/memory/heap.cc", "#include \"core/tensor/storage.h\"\n"),
      parse_source("core/ops/conv/conv.cc", "#include \"core/ops/matmul/matmul.h\"\n"),
      parse_source("data/text_data.cc", "#include \"data/tokenizers/tokenizer.h\"\n"),
      parse_source("data/tokenizers/tokenizer.cc", "#include \"data/text_data.h\"\n"),
  });
  EXPECT_THAT(found, ElementsAre(HasSubstr("core/tensor/storage.cc:1 includes core/memory/heap.h: "
                                           "core/tensor must not know core/memory"),
                                 HasSubstr("data/tokenizers must not know data")));
}

TEST(IncludeDirections, AVendorHeaderOutsideItsWrapperIsNamed) {
  EXPECT_THAT(
      escaped_vendor_headers({parse_source("nn/gpt2.cc", "#include \"configs/run.pb.h\"\n")}),
      ElementsAre(HasSubstr("nn/gpt2.cc:1 includes configs/run.pb.h")));
  EXPECT_THAT(
      escaped_vendor_headers({parse_source("core/tensor/shape.h", "#include <fmt/format.h>\n")}),
      ElementsAre(HasSubstr("core/tensor/shape.h:1")));
  EXPECT_THAT(escaped_vendor_headers(
                  {parse_source("launcher/plan_verb.cc", "#include <CLI/CLI.hpp>\n"),
                   parse_source("benchmarks/vmap.cc", "#include <CLI/App.hpp>\n"),
                   parse_source("launcher/command_line.cc", "#include <CLI/CLI.hpp>\n")}),
              ElementsAre(HasSubstr("launcher/plan_verb.cc:1"), HasSubstr("benchmarks/vmap.cc:1")));
  EXPECT_THAT(escaped_vendor_headers(
                  {parse_source("kernels/cpu/matmul/onednn.cc", "#include <dnnl.hpp>\n"),
                   parse_source("configs/loader.cc", "#include \"configs/run.pb.h\"\n")}),
              IsEmpty());
}

TEST(IncludeDirections, ACycleIsWrittenOut) {
  EXPECT_THAT(include_cycles({parse_source("core/a.h", "#include \"core/b.h\"\n"),
                              parse_source("core/b.h", "#include \"core/c.h\"\n"),
                              parse_source("core/c.h", "#include \"core/b.h\"\n")}),
              ElementsAre("core/b.h -> core/c.h -> core/b.h"));
}

}  // namespace
}  // namespace lockstep::structure
