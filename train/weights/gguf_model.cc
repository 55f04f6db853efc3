#include "train/weights/gguf_model.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/view.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "train/weights/gguf_writer.h"
#include "train/weights/multiplier_files.h"
#include "train/weights/tensor_bytes.h"

namespace lockstep::train {
namespace {

uint32_t whole(int64_t value) { return static_cast<uint32_t>(value); }
float real(double value) { return static_cast<float>(value); }

/// Names of Hugging Face and of GGUF, of parts that are there once, or in every block.
constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"ln_1", "attn_norm"},
    {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"},
    {"ln_2", "ffn_norm"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
});

/// "blk.3.attn_q.weight" for "model.layers.3.self_attn.q_proj.weight".
std::string gguf_name(std::string_view name) {
  for (const std::string_view prefix : {"transformer.", "model."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  std::string block;
  for (const std::string_view list : {"h.", "layers."}) {
    if (!name.starts_with(list)) continue;
    name.remove_prefix(list.size());
    block = fmt::format("blk.{}.", name.substr(0, name.find('.')));
    name.remove_prefix(name.find('.') + 1);
  }
  const size_t dot = name.rfind('.');
  const auto found =
      std::ranges::find(kNames, name.substr(0, dot), &decltype(kNames)::value_type::first);
  LS_ASSERT(found != kNames.end());
  return fmt::format("{}{}{}", block, found->second, name.substr(dot));
}

/// A query's or key's weight with the two halves of every head interleaved: Hugging Face rotates
/// element i with element i + depth / 2, GGUF's Llama with its neighbour.
Tensor interleaved(const Tensor& weight, int64_t heads) {
  const int64_t half = weight.size(0) / heads / 2;
  return weight.reshape({heads, 2, half, weight.size(1)})
      .transpose(1, 2)
      .reshape({weight.size(0), weight.size(1)});
}

void describe(GgufHeader& header, const nn::Gpt2Options& options) {
  header.add("general.architecture", std::string_view("gpt2"));
  header.add("gpt2.context_length", whole(options.context_length));
  header.add("gpt2.embedding_length", whole(options.width));
  header.add("gpt2.feed_forward_length", whole(4 * options.width));
  header.add("gpt2.block_count", whole(options.layers));
  header.add("gpt2.attention.head_count", whole(options.heads));
  header.add("gpt2.attention.layer_norm_epsilon", real(options.epsilon));
}

void describe(GgufHeader& header, const nn::LlamaOptions& options) {
  header.add("general.architecture", std::string_view("llama"));
  header.add("llama.vocab_size", whole(options.vocabulary));
  header.add("llama.context_length", whole(options.context_length));
  header.add("llama.embedding_length", whole(options.width));
  header.add("llama.feed_forward_length", whole(options.hidden_width));
  header.add("llama.block_count", whole(options.layers));
  header.add("llama.attention.head_count", whole(options.heads));
  header.add("llama.attention.head_count_kv", whole(options.kv_heads));
  header.add("llama.attention.layer_norm_rms_epsilon", real(options.epsilon));
  header.add("llama.rope.dimension_count", whole(options.width / options.heads));
  header.add("llama.rope.freq_base", real(options.rope_theta));
  if (std::holds_alternative<std::monostate>(options.rope_scaling)) return;
  const auto* const linear = std::get_if<nn::LinearRopeScaling>(&options.rope_scaling);
  LS_CHECK(linear != nullptr, ConfigError,
           "[gguf] the model scales its rotary positions in a way that is not written: expected "
           "linear scaling or none. Use --to hf.");
  header.add("llama.rope.scaling.type", std::string_view("linear"));
  header.add("llama.rope.scaling.factor", real(linear->factor));
}

/// Numbers of the format for kinds of tokens.
int32_t token_type(WrittenToken::Kind kind) {
  switch (kind) {
    case WrittenToken::Kind::kUnknown:
      return 2;
    case WrittenToken::Kind::kControl:
      return 3;
    case WrittenToken::Kind::kUserDefined:
      return 4;
    case WrittenToken::Kind::kByte:
      return 6;
    case WrittenToken::Kind::kNormal:
      break;
  }
  return 1;
}

/// `vocabulary` is the model's, which may have rows for tokens that never occur.
void describe(GgufHeader& header, const Tokenizer& tokenizer, int64_t vocabulary) {
  constexpr int32_t kUnused = 5;
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<int32_t> types;
  for (const WrittenToken& token : tokenizer.written_tokens()) {
    texts.push_back(token.text);
    scores.push_back(token.score);
    types.push_back(token_type(token.kind));
  }
  while (std::ssize(texts) < vocabulary) {
    texts.push_back(fmt::format("[PAD{}]", texts.size()));
    scores.push_back(0);
    types.push_back(kUnused);
  }
  const bool is_sentencepiece = tokenizer.name() == "sentencepiece";
  header.add("tokenizer.ggml.model", std::string_view(is_sentencepiece ? "llama" : "gpt2"));
  LS_CHECK(
      is_sentencepiece || !tokenizer.pre_tokenizer().empty(), ConfigError,
      "[gguf] the tokenizer splits texts in a way that is not written: expected that of GPT-2, "
      "Llama 3 or Qwen 2. Use --to hf.");
  header.add("tokenizer.ggml.pre", is_sentencepiece ? "default" : tokenizer.pre_tokenizer());
  header.add("tokenizer.ggml.tokens", texts);
  header.add("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  if (is_sentencepiece) {
    header.add("tokenizer.ggml.scores", std::span<const float>(scores));
    header.add("tokenizer.ggml.add_space_prefix", tokenizer.adds_space());
  } else {
    header.add("tokenizer.ggml.merges", tokenizer.merges());
  }
  if (const auto begin = tokenizer.begin_of_text()) {
    header.add("tokenizer.ggml.bos_token_id", *begin);
  }
  if (const auto end = tokenizer.end_of_text()) {
    header.add("tokenizer.ggml.eos_token_id", *end);
    header.add("tokenizer.ggml.padding_token_id", *end);
  }
  header.add("tokenizer.ggml.add_bos_token", false);
}

GgufType type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return GgufType::kF32;
    case DType::kBF16:
      return GgufType::kBF16;
    case DType::kF16:
      return GgufType::kF16;
    default:
      throw DTypeError(
          fmt::format("[gguf] expected float32, bfloat16 or float16 for the matrices, got {}.",
                      to_string(dtype)));
  }
}

/// The number of the format for the type of most tensors.
uint32_t file_type(DType dtype) {
  constexpr uint32_t kMostlyBF16 = 32;
  return dtype == DType::kF32 ? 0 : dtype == DType::kF16 ? 1 : kMostlyBF16;
}

/// One tensor of the file.
struct Entry {
  std::string name;
  Tensor tensor;
  int64_t heads = 0;  ///< of a weight that is interleaved, else 0
  DType dtype = DType::kF32;
};

std::vector<Entry> entries_of(const nn::LanguageModel& model, DType dtype) {
  const auto* const llama = dynamic_cast<const nn::Llama*>(&model);
  std::vector<Entry> entries;
  for (const nn::StoredParameter& parameter : model.stored_parameters()) {
    Entry entry{.name = gguf_name(parameter.name), .tensor = parameter.tensor};
    if (parameter.tensor.dim() > 1) entry.dtype = dtype;
    if (llama != nullptr && entry.name.ends_with(".attn_q.weight")) {
      entry.heads = llama->options().heads;
    }
    if (llama != nullptr && entry.name.ends_with(".attn_k.weight")) {
      entry.heads = llama->options().kv_heads;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

void save_gguf(const nn::LanguageModel& model, const Tokenizer* tokenizer,
               const std::filesystem::path& path, DType dtype, const std::string& name) {
  const NoGradGuard no_grad;
  (void)type_of(dtype);
  require_no_multipliers(model, "gguf");
  GgufHeader header;
  if (const auto* const gpt2 = dynamic_cast<const nn::Gpt2*>(&model)) {
    describe(header, gpt2->options());
  } else {
    const auto* const llama = dynamic_cast<const nn::Llama*>(&model);
    LS_CHECK(llama != nullptr, ConfigError, "[gguf] expected a GPT-2 or a Llama.");
    describe(header, llama->options());
  }
  header.add("general.name", std::string_view(name));
  header.add("general.file_type", file_type(dtype));
  if (tokenizer != nullptr) describe(header, *tokenizer, model.vocabulary());
  const std::vector<Entry> entries = entries_of(model, dtype);
  const auto bytes_in_file = [](const Entry& entry) {
    return static_cast<uint64_t>(entry.tensor.numel()) * size_of(entry.dtype);
  };
  for (const Entry& entry : entries) {
    const IntList sizes = entry.tensor.sizes();
    const std::vector<int64_t> copied(sizes.begin(), sizes.end());
    header.add_tensor(entry.name, copied, type_of(entry.dtype), bytes_in_file(entry));
  }
  try {
    AtomicFile file(path);
    file.write(header.bytes());
    for (const Entry& entry : entries) {
      const Tensor ordered =
          entry.heads > 0 ? interleaved(entry.tensor, entry.heads) : entry.tensor;
      file.write(bytes_of(ordered.to(entry.dtype).contiguous().to(kCPU)));
      file.write(std::vector<std::byte>(GgufHeader::padding_after(bytes_in_file(entry))));
    }
    file.publish();
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace lockstep::train
