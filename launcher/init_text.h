#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Configs that `lockstep init text` writes for a text of the user's own.
namespace lockstep::launcher {

/// Size of the model, with a run that suits it.
enum class InitSize {
  kSmall,   ///< minutes on a processor
  kMedium,  ///< hours on a processor, minutes on a GPU
  k124m,    ///< GPT-2's smallest published size: for GPUs
};

std::vector<std::string> init_size_names();
/// One of init_size_names().
InitSize parse_init_size(const std::string& name);

/// Tokens of the byte-pair tokenizer for a text of so many bytes: a power of two that grows with
/// the text, so that its rarest tokens still occur often enough to be learnt; 0 for a text so short
/// that single bytes are better.
int64_t vocabulary_for(int64_t text_bytes);

/// What a config is written for.
struct InitText {
  std::string path;   ///< of the text, as the config names it
  int64_t bytes = 0;  ///< of the text
  InitSize size = InitSize::kSmall;
  int64_t vocabulary = 0;  ///< asked of the byte-pair tokenizer; 0: bytes are the tokens
  int64_t tokens = 256;    ///< of the tokenizer that was made
  double bytes_per_token = 1;
};

/// A config with a comment for every choice, as the text of a .txtpb file.
std::string init_config(const InitText& text);

/// Tokens of a sequence of the model, which the text must be long enough for.
int64_t init_context(InitSize size);

}  // namespace lockstep::launcher
