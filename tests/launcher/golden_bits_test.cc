// Two short runs whose bits must not change: tests/train/golden/bits.json.

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/base/content_hash.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kFile = "tests/train/golden/bits.json";

/// Two micro-batches per leaf, dropout, gradient clipping, weight decay.
constexpr const char* kGpt =
    "model { gpt2 { context_length: 24 layers: 2 heads: 2 width: 48 dropout: 0.1 } }\n"
    "data { random {} }\n"
    "train { steps: 6 batch_size: 16 micro_batch_size: 1 leaves: 8 sample_bytes: 0 }\n";
/// Convolutions, batch norm, momentum.
constexpr const char* kResnet =
    "model { resnet { channels: 3 height: 8 width: 8 classes: 5 base_width: 8 blocks: [1, 1] } }\n"
    "data { random {} }\n"
    "optimizer { sgd { momentum: 0.9 } learning_rate: 0.05 }\n"
    "train { steps: 6 batch_size: 32 micro_batch_size: 4 leaves: 8 }\n";

/// Environment variables that limit the vector instructions of a run.
constexpr const char* kAvx2 = "LOCKSTEP_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2";
constexpr const char* kAvx512 = "ONEDNN_MAX_CPU_ISA=AVX512_CORE";

class GoldenBits : public Program {
 protected:
  void expect_golden(const std::string& name, const std::string& config,
                     const std::string& variables) const {
    put_file(folder_ / "run.txtpb", config + "reproducibility: BITWISE\n");
    const Result result = run("train run.txtpb --run-dir run", variables);
    ASSERT_EQ(result.status, 0) << result.output << result.errors;
    const OrderedJson facts =
        OrderedJson::parse(file_content(folder_ / "run/environment.json"))["arithmetic"];
    const std::string wanted_kernels = variables == kAvx2 ? "avx2" : "avx512";
    const std::string kernels = facts["kernels"];
    if (kernels != wanted_kernels) {
      GTEST_SKIP() << "this processor, or build, has " << kernels << " and no " << wanted_kernels;
    }
    // What the bits depend on. Cache sizes are no part of it: oneDNN chooses block sizes by them,
    // but the products of a BITWISE run are cut into fixed tiles.
    const std::string key =
        fmt::format("{}, oneDNN {}", kernels, facts["oneDNN"].get<std::string>());
    const std::string bits = bits_of_run();
    const OrderedJson golden =
        OrderedJson::parse(file_content(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / kFile));
    if (!golden[name].contains(key)) {
      GTEST_SKIP() << kFile << " has no bits of " << name << " for \"" << key
                   << "\" yet. Here: " << bits;
    }
    EXPECT_EQ(golden[name][key].get<std::string>(), bits)
        << "The bits of a run of " << name << " (" << key << ") have changed: results of old runs "
        << "cannot be repeated any more. Where that is meant, write the new hash, " << bits
        << ", into " << kFile << ", by a commit whose message says that bits change, and why.";
  }

 private:
  /// Hash of all losses, gradient norms and final weights.
  std::string bits_of_run() const {
    ContentHasher hasher;
    std::istringstream metrics(file_content(folder_ / "run/metrics.jsonl"));
    int steps = 0;
    for (std::string line; std::getline(metrics, line); ++steps) {
      const OrderedJson step = OrderedJson::parse(line);
      for (const char* number : {"loss", "grad_norm"}) {
        hasher.add(std::bit_cast<uint64_t>(step[number].get<double>()));
      }
    }
    EXPECT_EQ(steps, 6);
    const std::string weights = file_content(folder_ / "run/model.safetensors");
    uint64_t header = 0;
    EXPECT_GT(weights.size(), sizeof(header));
    std::memcpy(&header, weights.data(), sizeof(header));
    const size_t start = sizeof(header) + header;
    EXPECT_GT(weights.size(), start);
    hasher.add(std::string_view(weights).substr(start));
    return hasher.result().hex();
  }
};

TEST_F(GoldenBits, OfGptWithAvx2) { expect_golden("gpt", kGpt, kAvx2); }
TEST_F(GoldenBits, OfGptWithAvx512) { expect_golden("gpt", kGpt, kAvx512); }
TEST_F(GoldenBits, OfResnetWithAvx2) { expect_golden("resnet", kResnet, kAvx2); }
TEST_F(GoldenBits, OfResnetWithAvx512) { expect_golden("resnet", kResnet, kAvx512); }

}  // namespace
}  // namespace lockstep::launcher
