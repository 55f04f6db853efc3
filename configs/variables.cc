#include "configs/variables.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "configs/field_list.h"
#include "configs/run.pb.h"
#include "core/base/nearest.h"

namespace lockstep::config {
namespace {

constexpr std::string_view kPrefix = "LOCKSTEP_";

bool is_program_variable(const std::string& name) {
  return std::ranges::any_of(program_variables(),
                             [&](const ProgramVariable& known) { return name == known.name; });
}

/// Returns a map from variable name to field path.
std::map<std::string, std::string> field_variables() {
  std::map<std::string, std::string> variables;
  for (const std::string& path : field_paths()) variables.emplace(variable_name(path), path);
  return variables;
}

std::string unknown_variable(const std::string& name,
                             const std::map<std::string, std::string>& fields) {
  std::vector<std::string_view> known;
  for (const auto& [variable, path] : fields) known.emplace_back(variable);
  for (const ProgramVariable& variable : program_variables()) known.emplace_back(variable.name);
  const std::optional<std::string_view> meant = nearest(name, known);
  return fmt::format("{} names no field of a config and no setting of the program. {}", name,
                     meant ? fmt::format("Did you mean {}?", *meant)
                           : "Fields are written like LOCKSTEP_TRAIN_STEPS for train.steps.");
}

}  // namespace

const std::vector<ProgramVariable>& program_variables() {
  static const std::vector<ProgramVariable> kVariables = {
      {"LOCKSTEP_ALLOC_CONF", "settings of the caching allocator"},
      {"LOCKSTEP_ALLOW_TF32", "1: round f32 factors of products on GPUs to 10 bits of mantissa"},
      {"LOCKSTEP_CPU_CAPABILITY", "avx2: do not use loops for wider vectors than that"},
      {"LOCKSTEP_CUDA_LIBRARIES",
       "folders to look for CUDA's libraries in first, with colons between"},
      {"LOCKSTEP_CUDNN", "0: compute attention and convolutions on GPUs without cuDNN"},
      {"LOCKSTEP_DISPATCH_TRACE", "1: print every operator call and its keys"},
      {"LOCKSTEP_EMULATED_GPUS", "number of GPUs that libcuda_emulation.so makes up"},
      {"LOCKSTEP_EMULATED_MEMORY_MB", "memory of each of them"},
      {"LOCKSTEP_EMULATED_ORDER", "descending: they start blocks and threads from the last"},
      {"LOCKSTEP_HOST",
       "settings of the host devices: \"devices:2,memory_mb:512,kernel_threads:1\""},
      {"LOCKSTEP_JOB_ID", "the job that a rank belongs to; set by `lockstep launch`"},
      {"LOCKSTEP_JOB_SECRET", "what a job's ranks know each other by; set by `lockstep launch`"},
      {"LOCKSTEP_LAUNCH_BLOCKING", "1: wait for every kernel, so that errors name their call"},
      {"LOCKSTEP_LOCAL_RANK", "a process's rank among those of its node"},
      {"LOCKSTEP_LOCAL_WORLD_SIZE", "number of ranks on the process's node"},
      {"LOCKSTEP_MASTER_ADDR", "host of rank 0"},
      {"LOCKSTEP_MASTER_PORT", "port for a server of rank 0"},
      {"LOCKSTEP_NODE_COUNT", "number of a job's nodes"},
      {"LOCKSTEP_NODE_RANK", "number of the process's node"},
      {"LOCKSTEP_RANK", "a process's rank, where no launcher tells it"},
      {"LOCKSTEP_RESTART_COUNT", "starts of the job before this one; set by `lockstep launch`"},
      {"LOCKSTEP_SHM", "0: no shared memory between ranks of a node, but MPI"},
      {"LOCKSTEP_START_LIMIT", "seconds that the start of all ranks may take; 120 without"},
      {"LOCKSTEP_STREAM_SANITIZER",
       "1: report uses of memory that no event orders; stacks: say where"},
      {"LOCKSTEP_WARN_COPIES", "1: print every hidden copy with operator, shape and bytes"},
      {"LOCKSTEP_WARN_VMAP", "1: print every operator that vmap calls once per sample"},
      {"LOCKSTEP_WARN_WAITS", "1: print every hidden wait for a device with operator and stream"},
      {"LOCKSTEP_WORLD_SIZE", "number of a job's ranks, where no launcher tells it"},
  };
  return kVariables;
}

std::string variable_name(std::string_view path) {
  std::string name(kPrefix);
  for (const char c : path) {
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

Variables process_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == text.npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

void apply_variables(RunConfig& config, Origins& origins, const Variables& variables) {
  const std::map<std::string, std::string> fields = field_variables();
  for (const auto& [name, value] : variables) {
    if (is_program_variable(name)) continue;
    const std::string where = fmt::format("{}={}", name, value);
    const auto field = fields.find(name);
    if (field == fields.end()) throw SourceError(where, unknown_variable(name, fields));
    if (value.empty()) continue;
    set_value(config, origins, fmt::format("{}={}", field->second, value), where);
  }
}

}  // namespace lockstep::config
