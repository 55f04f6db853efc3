#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

/// Parsers of files and texts that come from outside, each fed with arbitrary bytes. libFuzzer
/// makes the bytes up (`./dev fuzz`, fuzzer_main.cc); corpus_test.cc feeds the files of
/// corpus/<target>/.
namespace lockstep::fuzz {

enum class Outcome { kAccepted, kRefused };

using Input = std::span<const uint8_t>;

/// A target gives `input` to its parser. A refusal is the exception that the parser documents, and
/// no other: whatever else is thrown leaves the target, which is a finding. What is accepted must
/// keep what the parser promises, else std::logic_error is thrown. Pure and thread-safe.
struct Target {
  const char* name;
  Outcome (*run)(Input input);
};

/// train/weights/safetensors.h: records tile the data, and the header written anew says the same.
Outcome fuzz_safetensors_header(Input input);
/// configs/load.h, load_text: a config written out reads back to the same text; errors name a line
/// of the text.
Outcome fuzz_text_proto(Input input);
/// configs/load.h, set_value on a small config, with each line in turn: a refused assignment
/// changes nothing.
Outcome fuzz_config_assignment(Input input);
/// data/token_shards.h, both formats: as many tokens as the size allows, all readable.
Outcome fuzz_shard(Input input);
/// data/tokenizers/bpe_vocabulary.h. The byte 0xff, which no text holds, ends the vocabulary and
/// starts the merges. The vocabulary is read as it stands, and again behind the 256 tokens that
/// every vocabulary needs, so that short inputs reach the merges.
Outcome fuzz_bpe_tokenizer(Input input);
/// data/tokenizers/sentencepiece_tokenizer.h. The model is read as it stands, and again behind the
/// 256 byte pieces. The input as a text, encoded and decoded, must be itself.
Outcome fuzz_sentencepiece_model(Input input);
/// train/report/metrics_history.h.
Outcome fuzz_metrics_history(Input input);
/// train/checkpoint_manifest.h. The text is read as it stands, and again with the hash at its end
/// that a writer would have put there.
Outcome fuzz_checkpoint_manifest(Input input);
/// core/memory/options.h: options written out read back to the same.
Outcome fuzz_allocator_options(Input input);
/// core/memory/allocation_trace.h: a trace written out reads back the same.
Outcome fuzz_allocation_trace(Input input);
/// dist/flight/flight_log.h: a log written out reads back to the same, and can be explained.
Outcome fuzz_flight_log(Input input);

/// All of them. A target's name is its function's without "fuzz_".
std::span<const Target> targets();

/// Throws std::logic_error with `promise` if it was not kept.
inline void require(bool kept, const char* promise) {
  if (!kept) throw std::logic_error(std::string("not kept: ") + promise);
}

inline std::string text_of(Input input) { return {input.begin(), input.end()}; }

}  // namespace lockstep::fuzz
