#include "configs/architectures.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <array>
#include <cmath>

#include "configs/origins.h"
#include "configs/run.pb.h"
#include "core/base/check.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

// --- transformers --------------------------------------------------------------------------------

void check_heads(const std::string& path, int64_t width, int64_t heads, const Origins& origins) {
  if (width % heads == 0) return;
  fail(origins, path + ".heads",
       fmt::format("{}.heads does not divide the width: expected a divisor of {}, got {}.", path,
                   width, heads));
}

void check_gpt2(const ModelConfig& model, const Origins& origins) {
  const Gpt2Config& gpt2 = model.gpt2();
  check_heads("model.gpt2", gpt2.width(), gpt2.heads(), origins);
}

Architecture::Defaults llama_defaults(const ModelConfig& model) {
  const LlamaConfig& llama = model.llama();
  const int64_t third = 3 * 64;  // 8/3 width in units of 64, rounded up
  const int64_t hidden = (8 * llama.width() + third - 1) / third * 64;
  Architecture::Defaults defaults = {{"kv_heads", fmt::format("{}", llama.heads())},
                                     {"hidden_width", fmt::format("{}", hidden)}};
  if (llama.rope_scaling().has_yarn()) {
    const double factor = llama.rope_scaling().yarn().factor();
    defaults.emplace_back("rope_scaling.yarn.attention_factor",
                          fmt::format("{}", 0.1 * std::log(factor) + 1));
  }
  return defaults;
}

void check_above(const std::string& path, const char* high_name, double high, const char* low_name,
                 double low, const Origins& origins) {
  if (high > low) return;
  fail(origins, path + "." + high_name,
       fmt::format("{}.{} is {}: expected more than {}, which is {}.", path, high_name, high,
                   low_name, low));
}

void check_rope_scaling(const RopeScaling& scaling, const Origins& origins) {
  const std::string path = "model.llama.rope_scaling";
  if (scaling.has_llama3()) {
    check_above(path + ".llama3", "high_freq_factor", scaling.llama3().high_freq_factor(),
                "low_freq_factor", scaling.llama3().low_freq_factor(), origins);
  }
  if (scaling.has_yarn()) {
    check_above(path + ".yarn", "beta_fast", scaling.yarn().beta_fast(), "beta_slow",
                scaling.yarn().beta_slow(), origins);
  }
}

void check_llama(const ModelConfig& model, const Origins& origins) {
  const LlamaConfig& llama = model.llama();
  const std::string path = "model.llama";
  check_heads(path, llama.width(), llama.heads(), origins);
  if (llama.heads() % llama.kv_heads() != 0) {
    fail(origins, path + ".kv_heads",
         fmt::format("{}.kv_heads does not divide the heads: expected a divisor of {}, got {}.",
                     path, llama.heads(), llama.kv_heads()));
  }
  if (llama.width() / llama.heads() % 2 != 0) {
    fail(origins, path + ".heads",
         fmt::format("{}: rotary positions turn pairs, so width / heads must be even: got {} / {} "
                     "= {}.",
                     path, llama.width(), llama.heads(), llama.width() / llama.heads()));
  }
  check_rope_scaling(llama.rope_scaling(), origins);
}

// --- classifiers ---------------------------------------------------------------------------------

constexpr int64_t kMostChannels = 65536;

void check_resnet(const ModelConfig& model, const Origins& origins) {
  const ResnetConfig& resnet = model.resnet();
  if (resnet.blocks().empty()) {
    fail(origins, "model.resnet.blocks",
         "model.resnet.blocks is []: expected at least one stage, as in [2, 2].");
  }
  int64_t channels = resnet.base_width();
  for (int i = 1; i < resnet.blocks_size() && channels <= kMostChannels; ++i) channels *= 2;
  if (channels > kMostChannels) {
    fail(origins, "model.resnet.base_width",
         fmt::format("model.resnet.base_width is {} and doubles with each of {} stages: expected "
                     "at most {} channels in the last.",
                     resnet.base_width(), resnet.blocks_size(), kMostChannels));
  }
}

// --- the table -----------------------------------------------------------------------------------

constexpr std::array kArchitectures = {
    Architecture{.name = "gpt2",
                 .defaults = nullptr,
                 .check = check_gpt2,
                 .context_length = [](const ModelConfig& m) { return m.gpt2().context_length(); },
                 .vocabulary = [](const ModelConfig& m) { return m.gpt2().vocab_size(); },
                 .width = [](const ModelConfig& m) { return m.gpt2().width(); },
                 .heads = [](const ModelConfig& m) { return m.gpt2().heads(); }},
    Architecture{.name = "llama",
                 .defaults = llama_defaults,
                 .check = check_llama,
                 .context_length = [](const ModelConfig& m) { return m.llama().context_length(); },
                 .vocabulary = [](const ModelConfig& m) { return m.llama().vocab_size(); },
                 .width = [](const ModelConfig& m) { return m.llama().width(); },
                 .heads = [](const ModelConfig& m) { return m.llama().heads(); }},
    Architecture{.name = "resnet",
                 .defaults = nullptr,
                 .check = check_resnet,
                 .context_length = nullptr,
                 .vocabulary = nullptr},
    Architecture{.name = "mlp",
                 .defaults = nullptr,
                 .check = nullptr,
                 .context_length = nullptr,
                 .vocabulary = nullptr},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture& architecture_of(const ModelConfig& model) {
  const pb::OneofDescriptor* members = model.GetDescriptor()->FindOneofByName("architecture");
  const pb::FieldDescriptor* member =
      model.GetReflection()->GetOneofFieldDescriptor(model, members);
  LS_ASSERT(member != nullptr);
  for (const Architecture& each : kArchitectures) {
    if (member->name() == each.name) return each;
  }
  throw ConfigError(fmt::format("[config] model.{} has no row in configs/architectures.cc.",
                                std::string(member->name())));
}

}  // namespace lockstep::config
