#include "tests/fuzz/targets.h"

#include <array>

namespace lockstep::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets = {
      Target{"safetensors_header", fuzz_safetensors_header},
      Target{"text_proto", fuzz_text_proto},
      Target{"config_assignment", fuzz_config_assignment},
      Target{"shard", fuzz_shard},
      Target{"bpe_tokenizer", fuzz_bpe_tokenizer},
      Target{"sentencepiece_model", fuzz_sentencepiece_model},
      Target{"metrics_history", fuzz_metrics_history},
      Target{"checkpoint_manifest", fuzz_checkpoint_manifest},
      Target{"allocator_options", fuzz_allocator_options},
      Target{"allocation_trace", fuzz_allocation_trace},
      Target{"flight_log", fuzz_flight_log},
      Target{"hugging_face_config", fuzz_hugging_face_config},
      Target{"weight_index", fuzz_weight_index},
      Target{"conformance_cases", fuzz_conformance_cases},
      Target{"config_variables", fuzz_config_variables},
      Target{"einsum", fuzz_einsum},
      Target{"host_options", fuzz_host_options},
      Target{"hostfile", fuzz_hostfile},
      Target{"json_lines", fuzz_json_lines},
      Target{"llmc_model", fuzz_llmc_model},
      Target{"memory_timeline", fuzz_memory_timeline},
      Target{"operator_schema", fuzz_operator_schema},
      Target{"rank_environment", fuzz_rank_environment},
      Target{"slurm_lists", fuzz_slurm_lists},
      Target{"store_message", fuzz_store_message},
      Target{"table", fuzz_table},
      Target{"tokenizer_json", fuzz_tokenizer_json},
      Target{"token_cache", fuzz_token_cache},
      Target{"run_starts", fuzz_run_starts},
      Target{"model_manifest", fuzz_model_manifest},
      Target{"arithmetic_facts", fuzz_arithmetic_facts},
  };
  return kTargets;
}

}  // namespace lockstep::fuzz
