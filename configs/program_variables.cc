#include "configs/program_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "core/base/parse_number.h"
#include "core/memory/options.h"

namespace lockstep::config {
namespace {

/// The sentence about a value that is not accepted, filled in by check_program_variables.
constexpr const char* kRefused = "refused";

std::string one_of(std::string_view value, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, value) != words.end() ? "" : kRefused;
}

std::string flag(std::string_view value) { return one_of(value, {"0", "1"}); }
std::string capability(std::string_view value) { return one_of(value, {"avx2", "avx512"}); }
std::string sanitizer(std::string_view value) { return one_of(value, {"0", "1", "stacks"}); }
std::string order(std::string_view value) { return one_of(value, {"ascending", "descending"}); }

template <int64_t kLow, int64_t kHigh>
std::string number(std::string_view value) {
  const auto parsed = parse_number<int64_t>(value);
  return parsed && *parsed >= kLow && *parsed <= kHigh ? "" : kRefused;
}

constexpr int64_t kMost = INT32_MAX;

std::string allocator_options(std::string_view value) {
  try {
    (void)parse_allocator_options(value, "LOCKSTEP_ALLOC_CONF");
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace

const std::vector<ProgramVariable>& program_variables() {
  static const std::vector<ProgramVariable> kVariables = {
      {"LOCKSTEP_ALLOC_CONF", "settings of the caching allocator", "key:value,key:value",
       allocator_options},
      {"LOCKSTEP_ALLOW_TF32", "1: round f32 factors of products on GPUs to 10 bits of mantissa",
       "0 or 1", flag, "0"},
      {"LOCKSTEP_CACHE_DIR", "folder of what is compiled while programs run", "a folder", nullptr},
      {"LOCKSTEP_CPU_CAPABILITY", "avx2: do not use loops for wider vectors than that",
       "avx2 or avx512", capability},
      {"LOCKSTEP_CUDA_LIBRARIES",
       "folders to look for CUDA's libraries in first, with colons between", "folders", nullptr},
      {"LOCKSTEP_CUDNN", "0: compute attention and convolutions on GPUs without cuDNN", "0 or 1",
       flag, "1"},
      {"LOCKSTEP_COMPILE_LOG", "1: print what compiled functions record, and why", "0 or 1", flag},
      {"LOCKSTEP_DISPATCH_TRACE", "1: print every operator call and its keys", "0 or 1", flag},
      {"LOCKSTEP_EMULATED_FAULT", "with that error of CUDA's they fail once there is that file",
       "NUMBER:FILE", nullptr},
      {"LOCKSTEP_EMULATED_GPUS", "number of GPUs that libcuda_emulation.so makes up",
       "a number of at least 1", number<1, kMost>},
      {"LOCKSTEP_EMULATED_MEMORY_MB", "memory of each of them", "a number of at least 1",
       number<1, kMost>},
      {"LOCKSTEP_EMULATED_ORDER", "descending: they start blocks and threads from the last",
       "ascending or descending", order},
      {"LOCKSTEP_HOST",
       "settings of the host devices: \"devices:2,memory_mb:512,kernel_threads:1\"",
       "key:value,key:value", nullptr},
      {"LOCKSTEP_JOB_ID", "the job that a rank belongs to; set by `lockstep launch`", "a text",
       nullptr, ""},
      {"LOCKSTEP_JOB_SECRET", "what a job's ranks know each other by; set by `lockstep launch`",
       "a text", nullptr},
      {"LOCKSTEP_KEEP_SLOW",
       "1: no rank is left out by parallel.leave_out_slower; set by `lockstep launch` where there "
       "would be too few",
       "0 or 1", flag},
      {"LOCKSTEP_LAUNCH_BLOCKING", "1: wait for every kernel, so that errors name their call",
       "0 or 1", flag},
      {"LOCKSTEP_LOCAL_RANK", "a process's rank among those of its node", "a number of at least 0",
       number<0, kMost>},
      {"LOCKSTEP_LOCAL_WORLD_SIZE", "number of ranks on the process's node",
       "a number of at least 1", number<1, kMost>},
      {"LOCKSTEP_MASTER_ADDR", "host of rank 0", "a host name or address", nullptr},
      {"LOCKSTEP_MASTER_PORT", "port for a server of rank 0", "a number from 0 to 65535",
       number<0, 65535>, ""},
      {"LOCKSTEP_NCCL_CHECK_VALUES",
       "1: each rank looks for NaN in what it gives to NCCL, and ends the job by its name",
       "0 or 1", flag},
      {"LOCKSTEP_NODE_COUNT", "number of a job's nodes", "a number of at least 1", number<1, kMost>,
       ""},
      {"LOCKSTEP_NODE_RANK", "number of the process's node", "a number of at least 0",
       number<0, kMost>},
      {"LOCKSTEP_RANK", "a process's rank, where no launcher tells it", "a number of at least 0",
       number<0, kMost>},
      {"LOCKSTEP_RESTART_COUNT", "starts of the job before this one; set by `lockstep launch`",
       "a number of at least 0", number<0, kMost>, ""},
      {"LOCKSTEP_SHM", "0: no shared memory between ranks of a node, but MPI or TCP", "0 or 1",
       flag, "1"},
      {"LOCKSTEP_START_LIMIT", "seconds that the start of all ranks may take; 120 without",
       "seconds from 1 to 86400", number<1, 86400>},
      {"LOCKSTEP_STREAM_SANITIZER",
       "1: report uses of memory that no event orders; stacks: say where", "0, 1 or stacks",
       sanitizer},
      {"LOCKSTEP_SUPERVISED",
       "1: who started the ranks tells the first failure from those that follow from it, so that "
       "they end at once; set by `lockstep launch`",
       "0 or 1", flag},
      {"LOCKSTEP_TRANSPORT",
       "mpi or tcp: what connects ranks; unset, MPI where its launcher has started them",
       "mpi or tcp", nullptr},
      {"LOCKSTEP_WARN_COPIES", "1: print every hidden copy with operator, shape and bytes",
       "0 or 1", flag},
      {"LOCKSTEP_WARN_VMAP", "1: print every operator that vmap calls once per sample", "0 or 1",
       flag},
      {"LOCKSTEP_WARN_WAITS", "1: print every hidden wait for a device with operator and stream",
       "0 or 1", flag},
      {"LOCKSTEP_WORLD_SIZE", "number of a job's ranks, where no launcher tells it",
       "a number of at least 1", number<1, kMost>, ""},
  };
  return kVariables;
}

std::string values_alike_on_ranks(const Variables& variables) {
  std::string lines;
  for (const ProgramVariable& variable : program_variables()) {
    if (variable.alike == nullptr) continue;
    const auto found = variables.find(variable.name);
    const bool unset = found == variables.end() || found->second.empty();
    lines += fmt::format("{}: {}\n", variable.name, unset ? variable.alike : found->second);
  }
  return lines;
}

void check_program_variables(const Variables& variables) {
  for (const ProgramVariable& variable : program_variables()) {
    const auto found = variables.find(variable.name);
    if (found == variables.end() || found->second.empty() || variable.problem == nullptr) continue;
    std::string problem = variable.problem(found->second);
    if (problem.empty()) continue;
    if (problem == kRefused) {
      problem = fmt::format("{} cannot be \"{}\": expected {}.", variable.name, found->second,
                            variable.accepted);
    }
    throw SourceError(fmt::format("{}={}", variable.name, found->second), problem);
  }
}

}  // namespace lockstep::config
