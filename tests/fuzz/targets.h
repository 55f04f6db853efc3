#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

/// Fuzz targets: parsers of external files and texts, called with arbitrary bytes. libFuzzer
/// generates the bytes (`./dev fuzz`, fuzzer_main.cc); corpus_test.cc uses the files of
/// corpus/<target>/.
namespace lockstep::fuzz {

enum class Outcome { kAccepted, kRefused };

using Input = std::span<const uint8_t>;

/// Passes `input` to a parser. The parser may refuse it only with its documented exception; any
/// other exception leaves the target and counts as a finding. Throws std::logic_error if accepted
/// input violates a guarantee of the parser. Pure and thread-safe.
struct Target {
  const char* name;
  Outcome (*run)(Input input);
};

/// train/weights/safetensors.h: records tile the data, and a rewritten header reads back the same.
Outcome fuzz_safetensors_header(Input input);
/// configs/load.h, load_text: a written config reads back to the same text; errors name a line of
/// the text.
Outcome fuzz_text_proto(Input input);
/// configs/load.h, set_value on a small config, for each line in turn: a refused assignment changes
/// nothing.
Outcome fuzz_config_assignment(Input input);
/// data/token_shards.h, both formats: the number of tokens matches the size, and all are readable.
Outcome fuzz_shard(Input input);
/// data/tokenizers/bpe_vocabulary.h. The byte 0xff, which valid text never contains, separates the
/// vocabulary from the merges. The vocabulary is parsed as given, and again after the 256 tokens
/// that every vocabulary needs, so that short inputs reach the merges.
Outcome fuzz_bpe_tokenizer(Input input);
/// data/tokenizers/json_tokenizer.h. The tokenizer is parsed as given, and again as some members of
/// one that is whole. An accepted one encodes a text to ids that it decodes.
Outcome fuzz_tokenizer_json(Input input);
/// data/tokenizers/sentencepiece_tokenizer.h. The model is parsed as given, and again after the 256
/// byte pieces. Encoding and decoding the input as text must give it back.
Outcome fuzz_sentencepiece_model(Input input);
/// train/report/metrics_history.h, and train/page/metrics_reader.h, which refuses nothing.
Outcome fuzz_metrics_history(Input input);
/// train/run/checkpoint_manifest.h. The text is parsed as given, and again with a correct hash
/// appended. Every file of an accepted manifest lies beside it.
Outcome fuzz_checkpoint_manifest(Input input);
/// core/memory/options.h: written options read back the same.
Outcome fuzz_allocator_options(Input input);
/// core/memory/allocation_trace.h: a written trace reads back the same.
Outcome fuzz_allocation_trace(Input input);
/// dist/flight/flight_log.h: a written log reads back the same, and can be explained.
Outcome fuzz_flight_log(Input input);
/// nn/models/hugging_face_config.h: the sizes of an accepted config lie in the ranges of
/// configs/model.proto.
Outcome fuzz_hugging_face_config(Input input);
/// train/weights/weight_index.h: every file of an accepted index lies beside it.
Outcome fuzz_weight_index(Input input);
/// tests/conformance/case_text.h.
Outcome fuzz_conformance_cases(Input input);
/// configs/variables.h: a line of the input is NAME=VALUE, without LOCKSTEP_.
Outcome fuzz_config_variables(Input input);
/// core/ops/matmul/einsum_equation.h: the result has letters of the operands, each once.
Outcome fuzz_einsum(Input input);
/// kernels/host/host_options.h, the value of LOCKSTEP_HOST.
Outcome fuzz_host_options(Input input);
/// launcher/launch/hostfile.h: hosts are listed once, with bounded slots.
Outcome fuzz_hostfile(Input input);
/// train/weights/llmc_header.h: an accepted header gives the size of the file.
Outcome fuzz_llmc_model(Input input);
/// train/report/memory_timeline.h: no moment exceeds the peak, and groups are few.
Outcome fuzz_memory_timeline(Input input);
/// core/dispatch/schema.h, as plug-ins define operators: a written schema reads back the same.
Outcome fuzz_operator_schema(Input input);
/// dist/rendezvous/rank_environment.h: a line of the input is a variable, NAME=VALUE.
Outcome fuzz_rank_environment(Input input);
/// dist/rendezvous/slurm_lists.h, both notations.
Outcome fuzz_slurm_lists(Input input);
/// dist/rendezvous/store_message.h: an accepted message is encoded to the same bytes.
Outcome fuzz_store_message(Input input);
/// data/json_lines.h: texts are UTF-8, and the lines that are refused are those that are skipped.
Outcome fuzz_json_lines(Input input);
/// data/table_data.h: a gzip-compressed table reads like the plain one.
Outcome fuzz_table(Input input);
/// data/token_cache.h and the tokens in an entry, data/tokenized_text.h.
Outcome fuzz_token_cache(Input input);
/// train/report/last_start.h: a start that is told of has ranks, and a known end or none.
Outcome fuzz_run_starts(Input input);
/// train/weights/manifest_text.h, the manifest of a finished run. The text is parsed as given, and
/// again with a correct hash in place of what follows its last line feed. Every file of an accepted
/// manifest lies beside it.
Outcome fuzz_model_manifest(Input input);
/// core/device/facts_text.h: written facts read back the same.
Outcome fuzz_arithmetic_facts(Input input);

/// All targets. A target's name is that of its function without "fuzz_".
std::span<const Target> targets();

/// Throws std::logic_error with `promise` unless `kept`.
inline void require(bool kept, const char* promise) {
  if (!kept) throw std::logic_error(std::string("not kept: ") + promise);
}

inline std::string text_of(Input input) { return {input.begin(), input.end()}; }

}  // namespace lockstep::fuzz
